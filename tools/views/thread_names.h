/* thread_names.h — what the rows of a view by thread are called, and what those that are no thread mean.
 * In: an image. Out: names; the same for the same threads of two runs, unless thread ids are asked for. */
#ifndef MEMSTOW_THREAD_NAMES_H
#define MEMSTOW_THREAD_NAMES_H

#include "tools/image/image.h"

#define THREADS_MAPPINGS "(mappings)"
#define THREADS_SHARED "(threads without a table)"
#define THREADS_EARLIER "(earlier threads)"
#define THREADS_INHERITED "(inherited)"

struct thread_name {
    char text[64];
};

/* with_tid: where another thread has the same name, this one's carries its id. */
struct thread_name thread_name(const struct image *image, size_t slot, bool with_tid);
/* A sentence about a row that is no thread, or NULL. */
const char *thread_name_note(const char *name);

#endif
