/* origins.c — see origins.h. */
#include "tools/watch/origins.h"
#include "tools/base/duration.h"
#include "tools/symbols/innermost.h"
#include "tools/subject/live.h"
#include "tools/proc/process.h"
#include "tools/reader/image_load.h"
#include "tools/base/text.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Tolerance for start times, which are in ticks of usually 1/100 s. */
#define TICK_NS (SECOND_NS / 50)

static bool load_image(struct image *image, pid_t pid) {
    static struct live live;
    char error[256];
    if (live_open(&live, pid, error, sizeof error) < 0) return false;
    bool done = source_map(&live.source) == 0 && image_load(image, &live.source, true) == 0;
    source_close(&live.source);
    return done;
}

void origins_load(struct origins *origins, pid_t pid) {
    *origins = (struct origins){.pid = pid};
    if (!load_image(&origins->image, pid)) return;
    image_drop_totals(&origins->image);
    origins->symbols = symbols_begin(&origins->image, pid);
}

void origins_clear(struct origins *origins) {
    if (origins->symbols) symbols_end(origins->symbols);
    image_clear(&origins->image);
    *origins = (struct origins){0};
}

const char *origins_missing(const struct origins *origins) {
    if (!origins->symbols) return "the process keeps no ledger that can be read";
    return origins->image.header.stacks == SNAP_STACKS_NONE ? "no call stacks are recorded" : NULL;
}

void origins_list(struct origins *origins) { origins->told = 0; }

typedef bool wanted_function(const struct origin *origin, const void *what);

static const struct origin *find_any(const struct origins *origins, wanted_function *wanted, const void *what) {
    for (size_t i = 0; origins->symbols && i < origins->image.origin_count; i++)
        if (wanted(&origins->image.origins[i], what)) return &origins->image.origins[i];
    return NULL;
}

static const struct origin *origin_find(const struct origins *origins, wanted_function *wanted, const void *what) {
    for (size_t i = 0; origins->symbols && i < origins->image.origin_count; i++)
        if (origins->image.origins[i].stack && wanted(&origins->image.origins[i], what))
            return &origins->image.origins[i];
    return NULL;
}

static bool is_of_thread(const struct origin *origin, const void *tid) {
    return origin->kind == SNAP_ORIGIN_OF_THREAD && origin->key == *(const uint32_t *)tid;
}

static bool is_of_handle(const struct origin *origin, const void *what) {
    const struct handle *handle = what;
    if (handle->fd < 0) return !origin->kind && origin->start <= handle->mapped_at && handle->mapped_at < origin->end;
    return origin->kind && origin->kind != SNAP_ORIGIN_OF_THREAD && origin->key == (uint32_t)handle->fd;
}

/* Whether the descriptor still is the file, socket or pipe of the record. No file server is asked. */
static bool is_same_thing(const struct origins *origins, const struct origin *origin) {
    char path[64];
    struct statx st;
    snprintf(path, sizeof path, "/proc/%d/fd/%u", (int)origins->pid, origin->key);
    if (statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_INO | STATX_TYPE, &st) < 0) return false;
    if (origin->inode || origin->device)
        return origin->inode == st.stx_ino && origin->device == ((uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor);
    if (origin->kind == SNAP_ORIGIN_COPY || origin->kind == SNAP_ORIGIN_INHERITED) return true;
    return S_ISSOCK(st.stx_mode) == (origin->kind == SNAP_ORIGIN_SOCKET);
}

static uint64_t age_of(const struct origin *origin) {
    uint64_t now = duration_now();
    return now > origin->birth_ns ? now - origin->birth_ns : 0;
}

static void origin_tell(struct origins *origins, const struct origin *origin, const char *what, FILE *to, int indent) {
    struct innermost stack;
    struct text ago = text_duration(age_of(origin));
    if (origin->stack == origins->told) {
        fprintf(to, "%*s%s %s ago, by the call stack above\n", indent, "", what, ago.s);
        return;
    }
    innermost_of(&stack, &origins->image, origins->symbols, origin->stack);
    if (!stack.count) return;
    origins->told = origin->stack;
    fprintf(to, "%*s%s %s ago:\n", indent, "", what, ago.s);
    innermost_print(&stack, to, indent);
}

const char *origins_without_stack(const struct origins *origins, const struct handle *handle) {
    if (handle->fd < 0 || origins_missing(origins)) return "";
    const struct origin *origin = find_any(origins, is_of_handle, handle);
    if (!origin || !is_same_thing(origins, origin)) return ", memstow did not see it opened";
    return origin->kind == SNAP_ORIGIN_INHERITED ? ", inherited" : "";
}

void origins_of_handle(struct origins *origins, const struct handle *handle, FILE *to, int indent) {
    const struct origin *origin = origin_find(origins, is_of_handle, handle);
    if (!origin) return;
    if (handle->fd < 0)
        origin_tell(origins, origin, "mapped", to, indent);
    else if (is_same_thing(origins, origin))
        origin_tell(origins, origin, "opened", to, indent);
}

/* The id of a recorded thread may meanwhile belong to a newer thread, whose start was not recorded. So a record that is
 * older than the thread does not count. */
void origins_of_task(struct origins *origins, const struct task *task, FILE *to, int indent) {
    struct process thread = {.start_ticks = task->start_ticks};
    if (task->tid == origins->pid || !origins->symbols) return;
    uint32_t tid = (uint32_t)process_inner_pid(task->tid);
    const struct origin *origin = origin_find(origins, is_of_thread, &tid);
    if (!origin) return;
    /* the record's age is taken before the thread's age, because otherwise the record could seem older than the
     * thread */
    uint64_t record_age = age_of(origin);
    if (record_age <= process_age(&thread) + TICK_NS) origin_tell(origins, origin, "started", to, indent);
}
