/* tracked.c — see tracked.h. */
#include "tools/subject/tracked.h"
#include "preload/shared/os.h"
#include "tools/base/list.h"
#include "tools/proc/process.h"
#include "tools/reader/reader.h"
#include "tools/subject/live.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void tracked_fill(struct tracked *tracked, pid_t pid, const struct live *live,
                         const struct snap_header *header) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    tracked->pid = pid;
    memcpy(tracked->name, header->name, sizeof tracked->name);
    snprintf(tracked->path, sizeof tracked->path, "%s", live->path);
    tracked->start_ns = header->start_ns;
    tracked->elapsed_ns = now_ns > header->start_ns ? now_ns - header->start_ns : 0;
    tracked->live = os_not_negative(header->host_live) + os_not_negative(header->mapped_live);
    tracked->peak = header->total_peak > tracked->live ? header->total_peak : tracked->live;
}

/* Adds a process. Leaves it out if it is not tracked, or if this user lacks the permission to look at it. Returns 0, or
 * -errno: this command lacks memory, descriptors or /proc. */
static int tracked_add(struct tracked_list *list, pid_t pid) {
    static struct live live;
    struct snap_header header;
    char error[256];
    int result = live_open(&live, pid, error, sizeof error);
    if (result < 0) return result == -1 ? 0 : result;
    if (reader_header(&header, &live.source, error, sizeof error) == 0) {
        if (!LIST_GROW(list->items, list->count, list->capacity)) {
            source_close(&live.source);
            return -ENOMEM;
        }
        tracked_fill(&list->items[list->count++], pid, &live, &header);
    }
    source_close(&live.source);
    return 0;
}

static int by_pid(const void *left, const void *right) {
    const struct tracked *a = left, *b = right;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

int tracked_collect(struct tracked_list *list, char *error, size_t size) {
    DIR *proc = process_can_be_seen() ? opendir("/proc") : NULL;
    int result = proc ? 0 : -errno;
    for (struct dirent *entry; result == 0 && (entry = readdir(proc));) {
        pid_t pid = process_parse(entry->d_name);
        if (pid) result = tracked_add(list, pid);
    }
    if (proc) closedir(proc);
    if (result < 0)
        snprintf(error, size,
                 result == -ENOENT ? "/proc cannot be read: it is not mounted" : "processes cannot be looked at: %s",
                 strerror(-result));
    if (list->count) qsort(list->items, list->count, sizeof *list->items, by_pid);
    return result < 0 ? -1 : 0;
}
