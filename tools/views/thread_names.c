/* thread_names.c — see thread_names.h. */
#include "tools/views/thread_names.h"

#include <stdio.h>
#include <string.h>

static const char *plain_name(const struct image *image, size_t slot) {
    if (slot == SNAP_THREAD_SHARED) return THREADS_SHARED;
    if (slot == SNAP_THREAD_MAPPINGS) return THREADS_MAPPINGS;
    return *image->threads[slot].name ? image->threads[slot].name : "(unnamed)";
}

enum { MANY = 4096 };

/* Whether another thread has the same name. Always true with more than MANY threads, because a search would be slow. */
static bool has_namesake(const struct image *image, size_t slot) {
    if (image->thread_count > MANY) return true;
    for (size_t i = SNAP_THREAD_FIRST; i < image->thread_count; i++)
        if (i != slot && image->threads[i].state != SNAP_THREAD_FREE &&
            strcmp(image->threads[i].name, image->threads[slot].name) == 0)
            return true;
    return false;
}

struct thread_name thread_name(const struct image *image, size_t slot, bool with_tid) {
    struct thread_name name;
    if (with_tid && slot >= SNAP_THREAD_FIRST && has_namesake(image, slot))
        snprintf(name.text, sizeof name.text, "%.32s, %u", plain_name(image, slot), image->threads[slot].tid);
    else
        snprintf(name.text, sizeof name.text, "%.60s", plain_name(image, slot));
    return name;
}

const char *thread_name_note(const char *name) {
    static const struct {
        const char *name, *note;
    } notes[] = {
        {THREADS_MAPPINGS, "the mappings of all threads."},
        {THREADS_EARLIER, "threads that ended, whose tables later ones use."},
        {THREADS_SHARED, "threads that got no table of their own."},
        {THREADS_INHERITED, "blocks from before the fork that the threads freed."},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
        if (strcmp(notes[i].name, name) == 0) return notes[i].note;
    return NULL;
}
