/* spawn.c — see spawn.h.
 *
 * The command must not be a child of the program: when a child that did an exec ends, the kernel sends SIGCHLD, and
 * waitpid(-1) finds the child. So the command is a grandchild. The process between the program and the command never
 * does an exec and has no exit signal, so only a wait that asks for such children (__WALL) finds it. This process
 * shares our memory, so it is cheap to make even in a process of many gigabytes. It makes only system calls. */
#include "preload/ledger/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/base/symbol.h"
#include "preload/base/seal.h"

enum { STACK = 32 * 1024, CANNOT_RUN = 127, CAPACITY = 4096 };
enum { COMMAND_REFUSED = 2, COMMAND_FAILED = 3 }; /* exit codes of the command */

static char command[CAPACITY];        /* "" when the library was preloaded by hand */
static char libraries[CAPACITY + 32]; /* "LD_LIBRARY_PATH=…", or "" */

/* Reads environment variables when the library is loaded, because a program may overwrite its environment later. */
__attribute__((constructor)) static void remember_command(void) {
    os_copy(command, sizeof command, os_variable("MEMSTOW_COMMAND"));
    const char *found = os_variable("LD_LIBRARY_PATH");
    if (!found[0] || strlen(found) >= CAPACITY) return;
    strcpy(libraries, "LD_LIBRARY_PATH=");
    strcat(libraries, found);
}

/* The data for starting one command. Two new processes, which run in our memory, read it: the process that becomes the
 * command, and the process between it and the program. */
struct spawn {
    __typeof__(&clone) clone; /* libc's own, not a replacement */
    char *arguments[6], *environment[2];
    char pid[24];
    /* The stacks of the process in between [0], and of the process that becomes the command [1]. */
    char stacks[2][STACK] __attribute__((aligned(16)));
};

/* Resets the signals, because the command would still ignore the signals that the program ignores, and because the
 * program's handlers do not exist in the command. */
static void default_signals(void) {
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } action = {0};
    uint64_t none = 0;
    for (int number = 1; number < 65; number++) os_call(SYS_rt_sigaction, number, &action, NULL, sizeof action.mask);
    os_call(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

static int run_command(void *context) {
    const struct spawn *self = context;
    long nowhere = os_call(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
    if (nowhere < 0) return CANNOT_RUN;
    for (int fd = 0; fd < 3; fd++)
        if (nowhere != fd) os_call(SYS_dup2, nowhere, fd);
    os_call(SYS_close_range, 3, ~0u, 0);
    default_signals();
    os_call(SYS_execve, command, self->arguments, self->environment);
    return CANNOT_RUN;
}

static long spawn_start(struct spawn *self, int which, int (*run)(void *), int flags) {
    int error = errno;
    long pid = self->clone(run, self->stacks[which] + STACK, CLONE_VM | flags, self);
    if (pid < 0) pid = -errno;
    errno = error;
    return pid;
}

/* Waits for a process and returns its exit code. Returns CANNOT_RUN if a signal killed it or if the wait failed. */
static int spawn_wait_for(long pid) {
    int status = 0;
    long result;
    do result = os_call(SYS_wait4, pid, &status, __WALL, NULL);
    while (result == -EINTR);
    return result == pid && WIFEXITED(status) ? WEXITSTATUS(status) : CANNOT_RUN;
}

/* The process between the program and the command. All signals stay blocked, because a signal to the program's group is
 * meant for the program. SIGCHLD gets its default action, because if it were ignored, the command would vanish before
 * its exit code is known. */
static int stand_between(void *context) {
    struct spawn *self = context;
    uint64_t action[4] = {0};
    os_call(SYS_rt_sigaction, SIGCHLD, action, NULL, sizeof(uint64_t));
    long pid = spawn_start(self, 1, run_command, CLONE_VFORK | SIGCHLD);
    return pid < 0 ? CANNOT_RUN : spawn_wait_for(pid);
}

/* Starts stand_between with all signals blocked, so that no handler of the program runs in the two new processes. */
static long start_blocked(struct spawn *self) {
    uint64_t all = ~UINT64_C(0), before = 0;
    os_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    long pid = spawn_start(self, 0, stand_between, 0);
    os_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return pid;
}

static int spawn_take_snapshot(struct spawn *self, const char *path) {
    self->clone = LIBC(clone);
    if (!self->clone) return CANNOT_RUN;
    os_decimal(self->pid, os_pid());
    char *arguments[] = {command, "snapshot", self->pid, "-o", (char *)path, NULL};
    memcpy(self->arguments, arguments, sizeof arguments);
    self->environment[0] = libraries[0] ? libraries : NULL;
    long pid = start_blocked(self);
    return pid < 0 ? CANNOT_RUN : spawn_wait_for(pid);
}

static int spawn_meaning(int code, const char *path) {
    struct stat status;
    switch (code) {
    case 0:
        return 0;
    case COMMAND_REFUSED:
        return os_call(SYS_newfstatat, AT_FDCWD, path, &status, AT_SYMLINK_NOFOLLOW) == 0 ? -EEXIST : -ENOENT;
    case COMMAND_FAILED:
        return -EIO;
    }
    return -ECHILD;
}

int spawn_snapshot(const char *path) {
    if (!path[0]) return -EINVAL;
    if (!command[0] || seal_is_set()) return -ECHILD;
    struct spawn *self = os_map(sizeof *self);
    if (!self) return -ENOMEM;
    int code = spawn_take_snapshot(self, path);
    os_unmap(self, sizeof *self);
    return spawn_meaning(code, path);
}
