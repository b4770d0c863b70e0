/* stow_thread.c — see stow_thread.h. */
#include "stow_thread.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>

#include "os.h"

enum { STACK = 256 << 10, UNSHARE = 2 /* CLOSE_RANGE_UNSHARE */ };

/* At the low end of its stack. */
struct stow_thread {
    void (*work)(void *context);
    void *context;
    bool *own_files;
    uint32_t running; /* the kernel clears it */
};

static int run(void *context) {
    struct stow_thread *self = context;
    if (self->own_files) *self->own_files = os_call(SYS_close_range, 0, ~0u, UNSHARE) == 0;
    self->work(self->context);
    os_call(SYS_exit, 0); /* only this thread */
    return 0;
}

struct stow_thread *thread_start(void (*work)(void *context), void *context, bool *own_files) {
    const int flags =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    struct stow_thread *self = os_map(STACK);
    if (!self) return NULL;
    *self = (struct stow_thread){work, context, own_files, 1};
    if (clone(run, (char *)self + STACK, flags, self, NULL, NULL, &self->running) > 0) return self;
    os_unmap(self, STACK);
    return NULL;
}

void thread_join(struct stow_thread *self) {
    const struct timespec most = {.tv_sec = 1};
    while (__atomic_load_n(&self->running, __ATOMIC_ACQUIRE)) os_call(SYS_futex, &self->running, FUTEX_WAIT, 1, &most);
    os_unmap(self, STACK);
}
