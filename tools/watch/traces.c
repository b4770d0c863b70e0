/* traces.c — see traces.h. */
#include "tools/watch/traces.h"
#include "tools/base/list.h"
#include "tools/base/duration.h"
#include "tools/proc/holdings.h"
#include "tools/proc/process.h"
#include "tools/proc/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

enum { CLOCK_GRAIN_NS = 20000000 };

const char *traces_word(enum trace_kind kind) {
    static const char *const words[] = {"shared memory", "temporary file", "socket", "System V shared memory"};
    return words[kind];
}

void traces_begin(struct traces *traces, char **arguments) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    /* CLOCK_GRAIN_NS is subtracted, because a new file gets the time of the clock's last tick, which is before `now` */
    *traces =
        (struct traces){.arguments = arguments,
                        .started_wall_ns = (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec - CLOCK_GRAIN_NS};
}

void traces_end(struct traces *traces) {
    free(traces->list);
    *traces = (struct traces){0};
}

/* --- which files count --- */

static bool lies_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/') length--;
    return length && strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool is_temporary(const char *path) {
    const char *own = getenv("TMPDIR");
    return lies_in(path, "/tmp") || lies_in(path, "/var/tmp") || (own && own[0] == '/' && lies_in(path, own));
}

/* Whether the file is a result that the user wants: the command line names it or its folder, or the file lies in the
 * current folder and that folder is a temporary one. */
static bool is_asked_for(const struct traces *traces, const char *path) {
    char cwd[4096];
    for (char **argument = traces->arguments; argument && *argument; argument++) {
        const char *value = strchr(*argument, '/');
        if (strstr(*argument, path)) return true;
        if (value && strlen(value) > 5 && strncmp(path, value, strlen(value)) == 0) return true;
    }
    return getcwd(cwd, sizeof cwd) && is_temporary(cwd) && lies_in(path, cwd);
}

static uint64_t birth_ns(const char *path) {
    struct statx st;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_CTIME, &st) < 0) return 0;
    struct statx_timestamp time = st.stx_mask & STATX_BTIME ? st.stx_btime : st.stx_ctime;
    return (uint64_t)time.tv_sec * SECOND_NS + time.tv_nsec;
}

/* Whether standard input, output or error of memstow, and so of the program, is this file. */
static bool is_output(const struct stat *st) {
    struct stat own;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fstat(fd, &own) == 0 && own.st_dev == st->st_dev && own.st_ino == st->st_ino) return true;
    return false;
}

/* --- the list of traces --- */

/* Compares the path, too, because the inode number of a deleted file is soon used again. */
static struct trace *trace_find(const struct traces *traces, const struct trace *like) {
    for (size_t i = 0; i < traces->count; i++) {
        struct trace *trace = &traces->list[i];
        if (trace->kind == like->kind && trace->inode == like->inode && trace->device == like->device &&
            strcmp(trace->path, like->path) == 0)
            return trace;
    }
    return NULL;
}

static bool is_left(struct trace *trace) {
    struct stat st;
    struct shmid_ds segment;
    if (trace->kind == TRACE_SYSTEM_V) return shmctl(trace->segment, IPC_STAT, &segment) == 0;
    if (lstat(trace->path, &st) < 0 || st.st_dev != trace->device || st.st_ino != trace->inode) return false;
    trace->bytes = (uint64_t)st.st_size;
    return true;
}

/* Drops traces that are gone. After a long run, most traces are gone. True: there is space for another trace. */
static bool traces_drop_gone(struct traces *traces) {
    size_t kept = 0;
    if (traces->missed) return false;
    for (size_t i = 0; i < traces->count; i++)
        if (is_left(&traces->list[i])) traces->list[kept++] = traces->list[i];
    traces->count = kept;
    traces->missed = kept == TRACES_MOST;
    return !traces->missed;
}

static void trace_add(struct traces *traces, const struct trace *trace) {
    struct trace *known = trace_find(traces, trace);
    if (known) known->needed |= traces->settles;
    if (known || traces->settles || (traces->count == TRACES_MOST && !traces_drop_gone(traces))) return;
    if (!LIST_GROW(traces->list, traces->count, traces->capacity)) return;
    traces->list[traces->count++] = *trace;
}

static void traces_consider(struct traces *traces, const struct member *member, const char *path, bool named_socket) {
    struct stat st;
    bool shared = handle_kind_is_shared(path);
    if (strlen(path) >= sizeof traces->list->path || (!shared && !named_socket && !is_temporary(path))) return;
    if (lstat(path, &st) < 0 || st.st_uid != geteuid() || S_ISDIR(st.st_mode)) return;
    if (birth_ns(path) < traces->started_wall_ns) return;
    if (!shared && !named_socket && (is_output(&st) || is_asked_for(traces, path))) return;
    if (S_ISREG(st.st_mode) && holdings_is_ledger(path)) return;
    struct trace trace = {.kind = shared         ? TRACE_SHARED
                                  : named_socket ? TRACE_SOCKET
                                                 : TRACE_TEMPORARY,
                          .pid = member->pid,
                          .device = st.st_dev,
                          .inode = st.st_ino};
    snprintf(trace.path, sizeof trace.path, "%s", path);
    memcpy(trace.name, member->name, sizeof trace.name);
    trace_add(traces, &trace);
}

/* --- noting what a process has --- */

static void note_socket(struct traces *traces, const struct member *member, const struct sockets *sockets,
                        const char *target) {
    const struct socket_line *entry = sockets_find(sockets, strtoull(target + sizeof "socket:[" - 1, NULL, 10));
    const char *path = entry && entry->named && entry->listens ? strchr(entry->text, '/') : NULL;
    if (path) traces_consider(traces, member, path, true);
}

static void note_descriptors(struct traces *traces, const struct member *member) {
    char path[64], target[4096];
    struct sockets sockets = {0};
    bool loaded = false;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process_living(member->pid));
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = 0;
        if (target[0] == '/')
            traces_consider(traces, member, target, false);
        else if (strncmp(target, "socket:", 7) == 0) {
            if (!loaded) sockets_load(&sockets, member->pid);
            loaded = true;
            note_socket(traces, member, &sockets, target);
        }
    }
    closedir(directory);
    sockets_clear(&sockets);
}

static void note_maps(struct traces *traces, const struct member *member) {
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process_living(member->pid));
    FILE *maps = fopen(path, "re");
    if (!maps) return;
    while (getline(&line, &size, maps) > 0) {
        char *shared = strchr(line, '/');
        if (!shared || !handle_kind_is_shared(shared)) continue;
        shared[strcspn(shared, "\n")] = 0;
        traces_consider(traces, member, shared, false);
    }
    free(line);
    fclose(maps);
}

static const struct member *find_pid(const struct family *family, pid_t pid) {
    for (size_t i = 0; i < family->count; i++)
        if (family->members[i].pid == pid) return &family->members[i];
    return NULL;
}

/* Notes the System V segments that members of the family made. The kernel tells the pid of each segment's maker. */
static void note_segments(struct traces *traces, const struct family *family) {
    char *line = NULL;
    size_t size = 0;
    FILE *table = fopen("/proc/sysvipc/shm", "re");
    if (!table) return;
    while (getline(&line, &size, table) > 0) {
        struct trace trace = {.kind = TRACE_SYSTEM_V};
        uint64_t changed;
        unsigned uid;
        if (sscanf(line, "%*d %d %*o %" SCNu64 " %d %*d %*d %u %*u %*u %*u %*u %*u %" SCNu64, &trace.segment,
                   &trace.bytes, &trace.pid, &uid, &changed) != 5)
            continue;
        const struct member *member = find_pid(family, trace.pid);
        if (!member || uid != geteuid() || (changed + 1) * SECOND_NS < traces->started_wall_ns) continue;
        snprintf(trace.path, sizeof trace.path, "%d", trace.segment);
        memcpy(trace.name, member->name, sizeof trace.name);
        trace_add(traces, &trace);
    }
    free(line);
    fclose(table);
}

void traces_note(struct traces *traces, const struct family *family) {
    for (size_t i = 0; i < family->count; i++) {
        if (!family->members[i].here) continue;
        note_descriptors(traces, &family->members[i]);
        note_maps(traces, &family->members[i]);
    }
    note_segments(traces, family);
}

/* Whether an exempt process needs the trace. The kernel says only how many users a System V segment has, so if any
 * exempt process lives, each segment with users counts as needed. */
static bool is_needed(const struct family *family, const struct trace *trace) {
    struct shmid_ds segment;
    const struct member *member = find_pid(family, trace->pid);
    if (trace->needed || (member && member->stays)) return true;
    return trace->kind == TRACE_SYSTEM_V && family->stays && shmctl(trace->segment, IPC_STAT, &segment) == 0 &&
           segment.shm_nattch > 0;
}

static void note_needed(struct traces *traces, const struct family *family) {
    for (size_t i = 0; i < traces->count; i++) traces->list[i].needed = false;
    traces->settles = true;
    for (size_t i = 0; i < family->count; i++) {
        if (!family->members[i].stays) continue;
        note_descriptors(traces, &family->members[i]);
        note_maps(traces, &family->members[i]);
    }
    traces->settles = false;
}

void traces_settle(struct traces *traces, const struct family *family) {
    note_segments(traces, family);
    note_needed(traces, family);
    traces->left = 0;
    for (size_t i = 0; i < traces->count; i++) {
        traces->list[i].left = !is_needed(family, &traces->list[i]) && is_left(&traces->list[i]);
        traces->left += traces->list[i].left;
    }
}
