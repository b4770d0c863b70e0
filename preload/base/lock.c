/* lock.c — see lock.h. */
#include "preload/base/lock.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

#include "preload/shared/os.h"
#include "preload/base/seal.h"

/* The signals that are blocked: all but those of faults. If a fault in our own code raised a blocked signal, the kernel
 * would kill the process. */
#define BIT(number) ((uint64_t)1 << ((number)-1))
static const uint64_t BLOCKED = ~(BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGFPE) | BIT(SIGTRAP) | BIT(SIGSYS));

bool lock_out_signals(uint64_t *before) {
    return !seal_is_set() && os_call(SYS_rt_sigprocmask, SIG_BLOCK, &BLOCKED, before, sizeof *before) == 0;
}

void lock_let_signals(uint64_t before) { os_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, 0, sizeof before); }

bool lock_try(struct lock *self) {
    uint32_t idle = 0;
    uint64_t signals = 0;
    if (lock_is_held(self)) return false;
    bool blocked = lock_out_signals(&signals);
    if (__atomic_compare_exchange_n(&self->held, &idle, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        self->blocked = blocked;
        self->signals = signals;
        return true;
    }
    if (blocked) lock_let_signals(signals);
    return false;
}

enum {
    SPINS = 1000,
    PAUSES = 1000, /* pauses of PAUSE_NS after the spins: the holder may wait for the disk or the processor */
    PAUSE_NS = 100000,
};

bool lock_pause(int turn) {
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (turn < SPINS || seal_is_set())
        __builtin_ia32_pause();
    else
        os_call(SYS_nanosleep, &pause, 0);
    return turn < SPINS + PAUSES;
}

static uint32_t given_up;

bool lock_wait(struct lock *self) {
    for (int turn = 0; lock_pause(turn); turn++)
        if (lock_try(self)) return true;
    __atomic_fetch_add(&given_up, 1, __ATOMIC_RELAXED);
    return false;
}

void lock_hold(struct lock *self) {
    while (!lock_wait(self))
        ;
}

uint32_t lock_given_up(void) { return __atomic_load_n(&given_up, __ATOMIC_RELAXED); }

bool lock_pass_on(struct lock *self, uint64_t *before) {
    bool blocked = self->blocked;
    *before = self->signals;
    __atomic_store_n(&self->held, 0, __ATOMIC_RELEASE);
    return blocked;
}

void lock_let_go(struct lock *self) {
    uint64_t signals;
    if (lock_pass_on(self, &signals)) lock_let_signals(signals);
}
