/* shutdown_processes.c — the processes that end with a program; see shutdown_processes.h. */
#include "shutdown_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "lock.h"
#include "os.h"
#include "shutdown_log.h"

enum { MOST = 256, NAME = 64, STEP_NS = 20000000 };

struct child {
    uint64_t start_ticks;
    uint32_t pid;
    bool keep;
    char name[NAME];
};

static struct child children[MOST];
static uint32_t count;
static struct lock lock;

void shutdown_processes_reset(void) {
    count = 0;
    memset(&lock, 0, sizeof lock);
}

static int write_list(void) {
    struct shutdown_list list;
    if (!count) {
        shutdown_list_remove();
        return 0;
    }
    if (!shutdown_list_begin(&list)) return -EIO;
    for (uint32_t i = 0; i < count; i++)
        shutdown_list_add(&list, children[i].pid, children[i].start_ticks, children[i].name, children[i].keep);
    return shutdown_list_end(&list) ? 0 : -EIO;
}

/* Where the same pid stood for one that is gone, it is replaced. */
static int place_for(uint32_t pid) {
    for (uint32_t i = 0; i < count; i++)
        if (children[i].pid == pid) return (int)i;
    return count < MOST ? (int)count++ : -ENOSPC;
}

int shutdown_process_add(uint32_t pid, const char *name, bool keep) {
    uint64_t start_ticks = os_start_ticks(pid);
    if (pid < 2 || pid == os_pid() || !start_ticks) return -ESRCH;
    if (!lock_wait(&lock)) return -EBUSY;
    int at = place_for(pid), result = at < 0 ? at : 0;
    if (at >= 0) {
        children[at] = (struct child){.start_ticks = start_ticks, .pid = pid, .keep = keep};
        os_copy(children[at].name, NAME, name);
        result = write_list();
    }
    lock_let_go(&lock);
    return result;
}

int shutdown_process_forget(uint32_t pid) {
    int result = -ENOENT;
    if (!lock_wait(&lock)) return -EBUSY;
    for (uint32_t i = 0; i < count; i++) {
        if (children[i].pid != pid) continue;
        children[i] = children[--count];
        result = write_list();
        break;
    }
    lock_let_go(&lock);
    return result;
}

/* --- their end --- */

/* A zombie counts as gone: to reap it is the program's business. Sets a hold on it, which nobody else can take over. */
static int hold(const struct child *child) {
    int fd = (int)os_call(SYS_pidfd_open, child->pid, 0);
    struct pollfd look = {.fd = fd, .events = POLLIN};
    if (fd < 0) return -1;
    if (os_start_ticks(child->pid) == child->start_ticks && os_call(SYS_poll, &look, 1, 0) == 0) return fd;
    os_close(fd);
    return -1;
}

/* Who leads a group takes it along: the number stays the group's while its leader is held. */
static void send(const struct child *child, int fd, int number) {
    if (os_call(SYS_getpgid, child->pid) == (long)child->pid) os_call(SYS_kill, -(long)child->pid, number);
    os_call(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

static bool is_gone(int fd) {
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return os_call(SYS_poll, &look, 1, 0) > 0;
}

static uint32_t still_there(const int *holds) {
    uint32_t some = 0;
    for (uint32_t i = 0; i < count; i++) some += holds[i] >= 0 && !is_gone(holds[i]);
    return some;
}

static void wait_for_all(const int *holds, uint64_t patience_ns) {
    const struct timespec step = {.tv_nsec = STEP_NS};
    for (uint64_t end = os_now() + patience_ns; still_there(holds) && os_now() < end;)
        os_call(SYS_nanosleep, &step, NULL);
}

static void log_end(const struct child *child, int64_t killed, uint64_t took_ns) {
    struct line line;
    shutdown_log_line(&line, "process");
    line_string(&line, "name", child->name);
    line_number(&line, "process", child->pid);
    line_string(&line, "ended", killed ? "SIGKILL" : "SIGTERM");
    line_number(&line, "took_ms", took_ns / 1000000);
    shutdown_log_write(&line);
}

int64_t shutdown_processes_end(uint64_t patience_ns) {
    int holds[MOST];
    int64_t killed = 0;
    uint64_t begun = os_now();
    bool locked = patience_ns && lock_wait(&lock);
    for (uint32_t i = 0; i < count; i++) {
        holds[i] = children[i].keep ? -1 : hold(&children[i]);
        if (holds[i] >= 0 && patience_ns) send(&children[i], holds[i], SIGTERM);
    }
    wait_for_all(holds, patience_ns);
    for (uint32_t i = 0; i < count; i++) {
        bool ended = holds[i] < 0 || is_gone(holds[i]);
        if (holds[i] >= 0 && ended) log_end(&children[i], 0, os_now() - begun);
        if (ended) continue;
        send(&children[i], holds[i], SIGKILL);
        log_end(&children[i], 1, os_now() - begun);
        killed++;
    }
    if (patience_ns) wait_for_all(holds, patience_ns);
    for (uint32_t i = 0; i < count; i++)
        if (holds[i] >= 0) os_close(holds[i]);
    if (locked) lock_let_go(&lock);
    return killed;
}

int64_t shutdown_processes_left(void) {
    int64_t left = 0;
    bool some = false;
    for (uint32_t i = 0; i < count; i++) {
        int fd = hold(&children[i]);
        if (fd < 0) continue;
        os_close(fd);
        some = true;
        if (children[i].keep) continue;
        left++;
        shutdown_log_step("left process", children[i].name, children[i].pid, 0);
    }
    if (!some) shutdown_list_remove();
    return left;
}
