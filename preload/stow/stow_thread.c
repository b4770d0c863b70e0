/* stow_thread.c — see stow_thread.h. */
#include "preload/stow/stow_thread.h"

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

/* At the low end of its stack. */
struct stow_thread {
    void (*work)(void *context);
    void *context;
    bool *own_files;
    uint32_t running; /* the kernel clears it */
    int maker;        /* of one that is apart: its parent's process id */
    int process;      /* and its own */
    uint32_t id;
};

static struct stow_thread *start(struct stow_thread self, int (*run)(void *), int flags) {
    struct stow_thread *made = os_map(STACK);
    if (!made) return NULL;
    *made = self;
    made->running = 1;
    /* Not ours, nor another library's of that name. */
    int id = LIBC(clone)(run, (char *)made + STACK, flags | CLONE_CHILD_CLEARTID, made, NULL, NULL, &made->running);
    if (id <= 0) os_unmap(made, STACK);
    if (id <= 0) return NULL;
    made->id = (uint32_t)id;
    if (!(flags & CLONE_THREAD)) made->process = id;
    return made;
}

static int run(void *context) {
    struct stow_thread *self = context;
    if (self->own_files) *self->own_files = os_call(SYS_close_range, 0, ~0u, UNSHARE) == 0;
    self->work(self->context);
    os_call(SYS_exit, 0); /* only this thread */
    return 0;
}

struct stow_thread *thread_start(void (*work)(void *context), void *context, bool *own_files) {
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    return start((struct stow_thread){.work = work, .context = context, .own_files = own_files}, run, flags);
}

/* It ends with the thread that made it, which may have ended before it could say so. */
static int run_apart(void *context) {
    struct stow_thread *self = context;
    os_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    if (os_call(SYS_getppid) == self->maker) self->work(self->context);
    os_call(SYS_exit, 0);
    return 0;
}

/* No signal tells of its end, and no wait() of the program that does not ask for clones finds it. */
struct stow_thread *thread_start_apart(void (*work)(void *context), void *context) {
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED;
    struct stow_thread self = {.work = work, .context = context, .maker = (int)os_call(SYS_getpid)};
    return start(self, run_apart, flags);
}

uint32_t thread_id(const struct stow_thread *self) { return self->id; }

/* One that is apart may have been stopped with the program, and nobody may let it go on. No longer running, its number
 * may be another's by now. */
void thread_join(struct stow_thread *self) {
    const struct timespec most = {.tv_sec = 1};
    if (self->process && __atomic_load_n(&self->running, __ATOMIC_ACQUIRE)) os_call(SYS_kill, self->process, SIGKILL);
    while (__atomic_load_n(&self->running, __ATOMIC_ACQUIRE)) os_call(SYS_futex, &self->running, FUTEX_WAIT, 1, &most);
    if (self->process) os_call(SYS_wait4, self->process, NULL, __WALL, NULL);
    os_unmap(self, STACK);
}
