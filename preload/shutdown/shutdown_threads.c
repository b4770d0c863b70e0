/* shutdown_threads.c — see shutdown_threads.h. */
#include "preload/shutdown/shutdown_threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shutdown/shutdown_audit.h"
#include "preload/shutdown/shutdown_log.h"
#include "preload/stow/stow_work.h"

enum { MOST = 256, NAME = 64, NAMED_MOST = 64, STEP_NS = 20000000 };

struct thread {
    uint64_t start_ticks;
    uint32_t tid;
    char name[NAME];
};

static struct thread threads[MOST];
static uint32_t count;
static struct lock lock;

void shutdown_threads_reset(void) {
    count = 0;
    memset(&lock, 0, sizeof lock);
}

/* Whether the thread still runs. If no descriptor is free, the thread's start time cannot be read. In this case the
 * thread counts as running as long as the kernel knows its id. */
static bool shutdown_threads_is_there(const struct thread *self) {
    if (os_call(SYS_tgkill, os_pid(), self->tid, 0) == -ESRCH) return false;
    uint64_t now = os_start_ticks(self->tid);
    return !now || now == self->start_ticks;
}

/* Returns the index of this thread's entry, or else of a free entry, or else of the entry of a thread that has ended.
 * Returns -ENOSPC if there is no such entry. */
static int shutdown_threads_slot_for(uint32_t tid) {
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].tid == tid) return (int)i;
    if (count < MOST) return (int)count++;
    for (uint32_t i = 0; i < count; i++)
        if (!shutdown_threads_is_there(&threads[i])) return (int)i;
    return -ENOSPC;
}

int shutdown_thread_add(const char *name) {
    uint32_t tid = os_tid();
    uint64_t start_ticks = os_start_ticks(tid);
    if (tid == os_pid()) return -EINVAL;
    if (!lock_wait(&lock)) return -EBUSY;
    int at = shutdown_threads_slot_for(tid);
    if (at >= 0) {
        threads[at] = (struct thread){.start_ticks = start_ticks, .tid = tid};
        os_copy(threads[at].name, NAME, name);
    }
    lock_let_go(&lock);
    return at < 0 ? at : 0;
}

/* --- waiting for threads --- */

/* The state of one wait. `threads` is a copy of the list, because the program may register threads meanwhile. `there`
 * says how many threads still ran when the time was over. */
struct wait {
    struct thread threads[MOST];
    uint32_t count, caller;
    uint64_t patience_ns;
    int64_t there;
};

static void copy_threads(struct wait *self) {
    bool locked = lock_wait(&lock);
    for (uint32_t i = 0; i < count; i++)
        if (threads[i].tid != self->caller && shutdown_threads_is_there(&threads[i]))
            self->threads[self->count++] = threads[i];
    if (locked) lock_let_go(&lock);
}

/* Writes a line into the log for each thread that has ended, and takes the thread out of the list. If `last`, the time
 * is over, and the function does the same for the threads that still run. */
static void look_at_threads(struct wait *self, uint64_t took_ns, bool last) {
    for (uint32_t i = 0; i < self->count;) {
        bool there = shutdown_threads_is_there(&self->threads[i]);
        if (there && !last) {
            i++;
            continue;
        }
        shutdown_log_step("thread", self->threads[i].name, there ? -ETIMEDOUT : 0, took_ns);
        self->there += there;
        self->threads[i] = self->threads[--self->count];
    }
}

static void shutdown_threads_wait_for_all(void *context) {
    const struct timespec step = {.tv_nsec = STEP_NS};
    struct wait *self = context;
    uint64_t begun_ns = os_now(), took_ns = 0;
    copy_threads(self);
    while (self->count) {
        look_at_threads(self, took_ns, took_ns >= self->patience_ns);
        if (self->count) os_call(SYS_nanosleep, &step, NULL);
        took_ns = os_now() - begun_ns;
    }
}

int64_t shutdown_threads_wait(uint64_t patience_ns) {
    struct wait *self = os_map(sizeof *self);
    bool own_files;
    if (!self) return -ENOMEM;
    self->patience_ns = patience_ns;
    self->caller = os_tid();
    stow_work_apart(shutdown_threads_wait_for_all, self, &own_files);
    int64_t there = self->there;
    os_unmap(self, sizeof *self);
    return there;
}

/* --- threads that are left --- */

static void read_name(char *to, size_t capacity, const char *tid, const char *file) {
    char path[96];
    os_copy(path, sizeof path, "/proc/self/task/");
    os_copy(path + strlen(path), 32, tid);
    os_copy(path + strlen(path), 32, file);
    to[0] = 0;
    int fd = os_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    long got = os_read(fd, to, capacity - 1);
    os_close(fd);
    to[got > 0 ? got : 0] = 0;
    for (char *end = to; *end; end++)
        if (*end == '\n') *end = 0;
}

static uint32_t shutdown_threads_number_of(const char *tid) { return (uint32_t)os_take_decimal(&tid); }

static void log_thread(const char *tid) {
    char name[32], waits[64];
    struct line line;
    read_name(name, sizeof name, tid, "/comm");
    read_name(waits, sizeof waits, tid, "/wchan");
    shutdown_log_line(&line, "left thread");
    line_string(&line, "name", name);
    line_string(&line, "thread", tid);
    line_string(&line, "waits_in", waits);
    shutdown_audit_thread(&line, shutdown_threads_number_of(tid));
    shutdown_log_write(&line);
}

enum { ASIDE = 3 };

struct left {
    /* ids of threads that do not count: the caller's, and two of memstow's, which may not have their names yet */
    uint32_t aside[ASIDE];
    int64_t count;
};

static bool is_ours(const struct left *self, const char *tid) {
    char number[24], name[32];
    for (int i = 0; i < ASIDE; i++) {
        os_decimal(number, self->aside[i]);
        if (strcmp(number, tid) == 0) return true;
    }
    read_name(name, sizeof name, tid, "/comm");
    return strcmp(name, "memstow") == 0 || strncmp(name, "memstow ", 8) == 0;
}

static bool note_thread(void *context, const char *tid) {
    struct left *self = context;
    if (!is_ours(self, tid) && self->count++ < NAMED_MOST) log_thread(tid);
    return true;
}

int64_t shutdown_threads_left(uint32_t asks, uint32_t limit) {
    struct left left = {.aside = {asks, limit, os_tid()}};
    os_each_name("/proc/self/task", note_thread, &left);
    return left.count;
}
