/* holdings.c — see holdings.h. */
#include "tools/proc/holdings.h"
#include "tools/base/list.h"
#include "tools/base/duration.h"
#include "tools/proc/process.h"
#include "tools/proc/sockets.h"
#include "tools/proc/waits.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 1 << 16, MAPPED_MOST = 1 << 12 };

static bool holdings_begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* --- reading descriptors --- */

static struct handle *add_handle(struct holdings *holdings) {
    size_t count = holdings->handle_count;
    if (count == MOST) return NULL;
    if (!LIST_GROW(holdings->handles, count, holdings->handle_capacity)) return NULL;
    holdings->handles[holdings->handle_count++] = (struct handle){.fd = -1};
    return &holdings->handles[count];
}

static void describe_socket(struct handle *handle, const struct sockets *sockets, const char *target) {
    uint64_t inode = strtoull(target + sizeof "socket:[" - 1, NULL, 10);
    const struct socket_line *entry = sockets_find(sockets, inode);
    snprintf(handle->what, sizeof handle->what, "%s",
             entry ? entry->text : "not a TCP, UDP or Unix socket that /proc lists");
}

/* Whether a descriptor probably came from the process's parent. This is so if the descriptor is 0, 1 or 2, if it is
 * /dev/null, or if it is no socket and has the same file as 0, 1 or 2. The search for such a file ends at the first
 * handle above 2, because descriptors 0, 1 and 2 come first in the list of handles. */
static bool is_standard(const struct holdings *holdings, const char *target, int fd) {
    if (fd <= 2) return true;
    if (holdings_begins(target, "/dev/null")) return true;
    for (size_t i = 0; i < holdings->handle_count && holdings->handles[i].fd <= 2; i++)
        if (strncmp(holdings->handles[i].what, target, sizeof holdings->handles[i].what - 1) == 0) return true;
    return false;
}

static void take_descriptor(struct holdings *holdings, const struct sockets *sockets, int directory, const char *name) {
    char target[4096];
    ssize_t length = readlinkat(directory, name, target, sizeof target - 1);
    struct handle *handle = length > 0 ? add_handle(holdings) : NULL;
    if (!handle) return;
    target[length] = 0;
    handle->fd = atoi(name);
    handle->kind = handle_kind_of(target);
    handle->standard = is_standard(holdings, target, handle->fd);
    if (handle->kind == HANDLE_SOCKET)
        describe_socket(handle, sockets, target);
    else
        snprintf(handle->what, sizeof handle->what, "%.255s", target);
}

static void load_descriptors(struct holdings *holdings, const struct sockets *sockets) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)process_living(holdings->pid));
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));)
        if (isdigit((unsigned char)entry->d_name[0]))
            take_descriptor(holdings, sockets, dirfd(directory), entry->d_name);
    closedir(directory);
}

/* --- reading maps --- */

struct mapping {
    uint64_t start, end, offset;
    char permissions[8];
    const char *path;
    pid_t thread; /* the thread whose /proc entry shows the process's memory (process_living) */
};

bool holdings_is_ledger(const char *path) {
    char magic[sizeof SNAP_MAGIC - 1] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    if (fd < 0) return holdings_begins(path, "/memfd:memstow");
    ssize_t got = read(fd, magic, sizeof magic);
    close(fd);
    return got == sizeof magic && memcmp(magic, SNAP_MAGIC, sizeof magic) == 0;
}

/* Whether a ledger is mapped at the address: looks at the process's memory, if that page is present. To open the file
 * instead could mean to wait for a network file system. */
static bool begins_ledger(pid_t pid, uint64_t address) {
    char path[64], magic[sizeof SNAP_MAGIC - 1] = "";
    uint64_t entry = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
    snprintf(path, sizeof path, "/proc/%d/pagemap", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && pread(fd, &entry, sizeof entry, (off_t)(address / page * sizeof entry)) == sizeof entry;
    if (fd >= 0) close(fd);
    if (!known || !(entry >> 63)) return false;
    struct iovec here = {magic, sizeof magic}, there = {(void *)(uintptr_t)address, sizeof magic};
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof magic &&
           memcmp(magic, SNAP_MAGIC, sizeof magic) == 0;
}

static struct mapped *find_mapped(const struct holdings *holdings, const char *path) {
    for (size_t i = holdings->mapped_count; i-- > 0;)
        if (strncmp(holdings->mapped[i].path, path, sizeof holdings->mapped->path - 1) == 0)
            return &holdings->mapped[i];
    return NULL;
}

static struct mapped *add_mapped(struct holdings *holdings, const char *path) {
    size_t count = holdings->mapped_count;
    if (count == MAPPED_MOST) return NULL;
    if (!LIST_GROW(holdings->mapped, count, holdings->mapped_capacity)) return NULL;
    struct mapped *mapped = &holdings->mapped[holdings->mapped_count++];
    *mapped = (struct mapped){0};
    snprintf(mapped->path, sizeof mapped->path, "%.255s", path);
    return mapped;
}

static void take_file(struct holdings *holdings, const struct mapping *mapping) {
    struct mapped *mapped = find_mapped(holdings, mapping->path);
    if (!mapped && !(mapped = add_mapped(holdings, mapping->path))) return;
    mapped->bytes += mapping->end - mapping->start;
    mapped->code |= mapping->permissions[2] == 'x';
    if (mapping->permissions[3] == 's' && !mapping->offset)
        mapped->ledger |= begins_ledger(mapping->thread, mapping->start);
}

static void drop_ledgers(struct holdings *holdings) {
    size_t kept = 0;
    for (size_t i = 0; i < holdings->mapped_count; i++)
        if (!holdings->mapped[i].ledger) holdings->mapped[kept++] = holdings->mapped[i];
    holdings->mapped_count = kept;
}

static int holdings_by_size(const void *left, const void *right) {
    const struct mapped *a = left, *b = right;
    if (a->code != b->code) return a->code - b->code;
    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static void sort_mapped(struct holdings *holdings) {
    if (holdings->mapped) qsort(holdings->mapped, holdings->mapped_count, sizeof *holdings->mapped, holdings_by_size);
    for (size_t i = 0; i < holdings->mapped_count; i++) holdings->code_count += holdings->mapped[i].code;
}

static void take_mapping(struct holdings *holdings, pid_t thread, char *line) {
    struct mapping it = {.thread = thread};
    int at = 0;
    line[strcspn(line, "\n")] = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &it.start, &it.end, it.permissions,
               &it.offset, &at) < 4 ||
        !line[at])
        return;
    it.path = line + at;
    bool sysv = holdings_begins(it.path, "/SYSV");
    if (it.path[0] == '/') holdings->mapped_files++;
    bool shared = it.permissions[3] == 's' && (handle_kind_is_shared(it.path) || sysv);
    if (it.path[0] == '/' && !shared) take_file(holdings, &it);
    if (!shared || holdings_is_ledger(it.path)) return;
    holdings->shared_bytes += it.end - it.start;
    struct handle *handle = add_handle(holdings);
    if (!handle) return;
    handle->kind = HANDLE_SHARED;
    handle->mapped_at = it.start;
    snprintf(handle->what, sizeof handle->what, "%.255s", it.path);
}

static void load_maps(struct holdings *holdings) {
    char path[64], *line = NULL;
    size_t size = 0;
    pid_t thread = process_living(holdings->pid);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)thread);
    FILE *maps = fopen(path, "re");
    if (!maps) return;
    while (getline(&line, &size, maps) > 0) take_mapping(holdings, thread, line);
    free(line);
    fclose(maps);
    drop_ledgers(holdings);
    sort_mapped(holdings);
}

/* --- putting handles from descriptors and maps in order --- */

/* Compares two handles by descriptor, for qsort. Handles that are only mapped have the descriptor -1. They come last,
 * because -1 becomes the largest unsigned number. */
static int by_fd(const void *left, const void *right) {
    unsigned a = (unsigned)((const struct handle *)left)->fd, b = (unsigned)((const struct handle *)right)->fd;
    return (a > b) - (a < b);
}

static int by_thing(const void *left, const void *right) {
    const struct handle *a = left, *b = right;
    int order = a->kind == b->kind ? strcmp(a->what, b->what) : a->kind < b->kind ? -1 : 1;
    return order ? order : by_fd(left, right);
}

static bool is_same_memory(const struct handle *a, const struct handle *b) {
    return a->kind == HANDLE_SHARED && b->kind == HANDLE_SHARED && strcmp(a->what, b->what) == 0;
}

/* Drops duplicates: shared memory is listed once, even with several descriptors and mappings. */
static void tell_once(struct holdings *holdings) {
    struct handle *handles = holdings->handles;
    size_t kept = 0;
    if (!handles) return;
    qsort(handles, holdings->handle_count, sizeof *handles, by_thing);
    for (size_t i = 0; i < holdings->handle_count; i++)
        if (!kept || !is_same_memory(&handles[kept - 1], &handles[i])) handles[kept++] = handles[i];
    holdings->handle_count = kept;
    qsort(handles, kept, sizeof *handles, by_fd);
    for (size_t i = 0; i < kept; i++) {
        holdings->descriptors += handles[i].fd >= 0;
        holdings->of_kind[handles[i].kind] += !handles[i].standard;
    }
}

/* --- reading threads --- */

static const struct handle *find_handle(const struct holdings *holdings, int fd) {
    struct handle key = {.fd = fd};
    return holdings->descriptors ? bsearch(&key, holdings->handles, holdings->descriptors, sizeof key, by_fd) : NULL;
}

static void describe_wait(const struct holdings *holdings, struct task *task) {
    struct wait wait;
    wait_look(&wait, holdings->pid, task->tid);
    const struct handle *handle = wait.fd >= 0 ? find_handle(holdings, wait.fd) : NULL;
    if (task->state == 'Z' || task->state == 'X')
        snprintf(task->waits, sizeof task->waits, "has ended");
    else if (!wait.call && wait.number < 0)
        snprintf(task->waits, sizeof task->waits, task->state == 'R' ? "runs" : "does not run; /proc does not say why");
    else if (!wait.call)
        snprintf(task->waits, sizeof task->waits, "in system call %d", wait.number);
    else if (strcmp(wait.call, "runs") == 0)
        snprintf(task->waits, sizeof task->waits, "runs, %.1f s of processor time so far",
                 (double)task->processor_ns / 1e9);
    else if (handle)
        snprintf(task->waits, sizeof task->waits, "in %s, descriptor %d: %.100s", wait.call, wait.fd, handle->what);
    else
        snprintf(task->waits, sizeof task->waits, "in %s", wait.call);
}

static bool read_task(struct task *task, pid_t pid) {
    char path[64], line[1024];
    struct process stat;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)task->tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    if (fd >= 0) close(fd);
    if (got <= 0) return false;
    line[got] = 0;
    if (!process_read_stat(&stat, line)) return false;
    snprintf(task->name, sizeof task->name, "%.15s", stat.name);
    task->state = stat.state;
    task->start_ticks = stat.start_ticks;
    task->processor_ns = stat.processor_ticks * (SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK));
    return true;
}

static void take_task(struct holdings *holdings, pid_t tid) {
    struct task task = {.tid = tid};
    if (holdings->task_count == MOST || !read_task(&task, holdings->pid)) return;
    if (!LIST_GROW(holdings->tasks, holdings->task_count, holdings->task_capacity)) return;
    describe_wait(holdings, &task);
    holdings->tasks[holdings->task_count++] = task;
}

static int by_tid(const void *left, const void *right) {
    const struct task *a = left, *b = right;
    return (a->tid > b->tid) - (a->tid < b->tid);
}

static void load_tasks(struct holdings *holdings) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)holdings->pid);
    DIR *directory = opendir(path);
    if (!directory) return;
    for (struct dirent *entry; (entry = readdir(directory));) {
        pid_t tid = process_parse(entry->d_name);
        if (tid) take_task(holdings, tid);
    }
    closedir(directory);
    if (holdings->task_count) qsort(holdings->tasks, holdings->task_count, sizeof *holdings->tasks, by_tid);
}

int holdings_load(struct holdings *holdings, pid_t pid) {
    struct sockets sockets;
    *holdings = (struct holdings){.pid = pid};
    sockets_load(&sockets, pid);
    load_descriptors(holdings, &sockets);
    sockets_clear(&sockets);
    load_maps(holdings);
    tell_once(holdings);
    load_tasks(holdings);
    return holdings->task_count ? 0 : -1;
}

void holdings_clear(struct holdings *holdings) {
    free(holdings->tasks);
    free(holdings->handles);
    free(holdings->mapped);
    *holdings = (struct holdings){0};
}
