/* stow_thread.c — see stow_thread.h. */
#include "preload/stow/stow_thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/base/symbol.h"

enum { STACK = 256 << 10, UNSHARE = 2 /* CLOSE_RANGE_UNSHARE */ };

/* This struct is at the low end of the thread's stack. A process apart is one that stow_thread_start_apart has
 * started. */
struct stow_thread {
    void (*work)(void *context);
    void *context;
    bool *own_files;
    uint32_t running; /* the kernel sets this to 0 when the thread has ended */
    int maker;        /* for a process apart: the pid of its parent */
    int process;      /* for a process apart: its own pid */
    uint32_t id;
};

static struct stow_thread *stow_thread_clone(struct stow_thread self, int (*stow_thread_run)(void *), int flags) {
    struct stow_thread *made = os_map(STACK);
    if (!made) return NULL;
    *made = self;
    made->running = 1;
    int error = errno;
    /* Calls libc's own clone, neither our hook nor another library's. */
    int id = LIBC(clone)(stow_thread_run, (char *)made + STACK, flags | CLONE_CHILD_CLEARTID, made, NULL, NULL,
                         &made->running);
    errno = error;
    if (id <= 0) os_unmap(made, STACK);
    if (id <= 0) return NULL;
    made->id = (uint32_t)id;
    if (!(flags & CLONE_THREAD)) made->process = id;
    return made;
}

static int stow_thread_run(void *context) {
    struct stow_thread *self = context;
    if (self->own_files) *self->own_files = os_call(SYS_close_range, 0, ~0u, UNSHARE) == 0;
    self->work(self->context);
    os_call(SYS_exit, 0); /* ends only this thread */
    return 0;
}

struct stow_thread *stow_thread_start(void (*work)(void *context), void *context, bool *own_files) {
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    return stow_thread_clone((struct stow_thread){.work = work, .context = context, .own_files = own_files},
                             stow_thread_run, flags);
}

/* The main function of a process that stow_thread_start_apart makes. After prctl, the kernel kills this process when
 * the thread that started this process ends. If the program ended before the call of prctl, this process has another
 * parent now, and ends at once. */
static int run_apart(void *context) {
    struct stow_thread *self = context;
    os_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (os_call(SYS_getppid) == self->maker) self->work(self->context);
    os_call(SYS_exit, 0);
    return 0;
}

/* The process sends no signal when it ends. A wait() of the program does not find it, except with __WCLONE or
 * __WALL. */
struct stow_thread *stow_thread_start_apart(void (*work)(void *context), void *context) {
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED;
    struct stow_thread self = {.work = work, .context = context, .maker = (int)os_call(SYS_getpid)};
    return stow_thread_clone(self, run_apart, flags);
}

uint32_t stow_thread_id(const struct stow_thread *self) { return self->id; }

/* A process apart may have been stopped together with the program, and perhaps nobody continues it. So it is killed.
 * But if it has ended already, it is not killed, because another process may have its pid by now. */
void stow_thread_join(struct stow_thread *self) {
    const struct timespec most = {.tv_sec = 1};
    if (self->process && __atomic_load_n(&self->running, __ATOMIC_ACQUIRE)) os_call(SYS_kill, self->process, SIGKILL);
    while (__atomic_load_n(&self->running, __ATOMIC_ACQUIRE)) os_call(SYS_futex, &self->running, FUTEX_WAIT, 1, &most);
    if (self->process) os_call(SYS_wait4, self->process, NULL, __WALL, NULL);
    os_unmap(self, STACK);
}
