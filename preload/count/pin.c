/* pin.c — see pin.h. */
#include "preload/count/pin.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/stacks/stack.h"
#include "preload/base/seal.h"
#include "preload/count/thread_inside.h"
#include "preload/base/forked.h"

static uint32_t epoch; /* the number of calls of pin_epoch */

/* Pinned threads without a slot. There are few, and most of them are about to end. A thread that finds no free entry is
 * only counted, in more_strays. */
enum { STRAYS = 32 };
static struct stray {
    uint32_t tid;   /* 0: the entry is free */
    uint32_t quiet; /* as in struct thread */
    uintptr_t pinned;
} strays[STRAYS];
static uint32_t more_strays, more_quiet; /* more_quiet: the last epoch in which more_strays was seen to be 0 */

static struct stray *stray_with(uint32_t tid) {
    for (int i = 0; i < STRAYS; i++)
        if (__atomic_load_n(&strays[i].tid, __ATOMIC_RELAXED) == tid) return &strays[i];
    return NULL;
}

static struct stray *new_stray(uint32_t tid) {
    for (int i = 0; i < STRAYS; i++) {
        uint32_t none = 0;
        if (__atomic_compare_exchange_n(&strays[i].tid, &none, tid, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return &strays[i];
    }
    return NULL;
}

/* Whether the thread has left an earlier hook by longjmp. `inner` is an address in the stack frame of the earlier hook,
 * `slot` an address in the stack frame of the present hook. While the thread is on the alternate signal stack, the
 * answer is false. Otherwise the earlier hook was left in two cases:
 * - `slot` is not below `inner`: the frame of the earlier hook is gone.
 * - `inner` is on the alternate stack: the earlier hook ran in a signal handler, and this handler is over.
 *
 * stack_has_left answers the same question, but needs the bounds of the stack, which are not known here. */
static bool stray_has_left(uintptr_t inner, uintptr_t slot) {
    stack_t other;
    if (os_call(SYS_sigaltstack, 0, &other) < 0 || other.ss_flags & SS_ONSTACK) return false;
    return slot >= inner || inner - (uintptr_t)other.ss_sp < other.ss_size;
}

/* In a sandbox no pin is made, so that the kernel need not be asked for the thread's id. Nothing needs a pin there,
 * because no site becomes free any more. */
static enum pin pin_stray(uintptr_t slot) {
    if (seal_is_set()) return PIN_OUTER;
    uint32_t tid = os_tid();
    struct stray *self = stray_with(tid);
    if (self && self->pinned && !stray_has_left(self->pinned, slot)) return PIN_OUTER;
    if (!self) self = new_stray(tid);
    if (!self) {
        __atomic_fetch_add(&more_strays, 1, __ATOMIC_SEQ_CST);
        return PIN_MORE;
    }
    __atomic_store_n(&self->pinned, slot, __ATOMIC_SEQ_CST);
    return PIN_STRAY;
}

/* Does nothing in a forked child, because the id of the child's thread differs. */
static void unpin_stray(void) {
    struct stray *self = seal_is_set() ? NULL : stray_with(os_tid());
    if (!self) return;
    __atomic_store_n(&self->pinned, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&self->tid, 0, __ATOMIC_RELEASE);
}

static void unpin_one_more(void) {
    uint32_t seen = __atomic_load_n(&more_strays, __ATOMIC_RELAXED);
    while (seen &&
           !__atomic_compare_exchange_n(&more_strays, &seen, seen - 1, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
}

/* Only ESRCH proves that the thread has ended. Other errors come when the id is not known (0), or when a filter forbids
 * the question. */
static bool has_died(uint32_t tid) { return os_call(SYS_tgkill, ledger_head->pid, tid, 0) == -ESRCH; }

static bool strays_quiet(uintptr_t slot) {
    bool all = true;
    for (int i = 0; i < STRAYS; i++) {
        struct stray *stray = &strays[i];
        uint32_t tid = __atomic_load_n(&stray->tid, __ATOMIC_ACQUIRE);
        uintptr_t pinned = __atomic_load_n(&stray->pinned, __ATOMIC_SEQ_CST);
        if (tid && pinned && pinned != slot && has_died(tid) &&
            __atomic_compare_exchange_n(&stray->pinned, &pinned, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            __atomic_store_n(&stray->tid, 0, __ATOMIC_RELEASE);
            pinned = 0;
        }
        if (!pinned || pinned == slot) stray->quiet = epoch;
        all = all && stray->quiet == epoch;
    }
    if (!__atomic_load_n(&more_strays, __ATOMIC_SEQ_CST)) more_quiet = epoch;
    return all && more_quiet == epoch;
}

enum pin pin_begin(uintptr_t slot) {
    if (thread_slot() == SNAP_THREAD_SHARED) return pin_stray(slot);
    struct thread *self = thread_self;
    if (self->pinned && !stack_has_left(self->pinned, slot)) return PIN_OUTER;
    __atomic_store_n(&self->pinned, slot, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return PIN_OWN;
}

void pin_end(enum pin pin) {
    if (pin == PIN_STRAY)
        unpin_stray();
    else if (pin == PIN_MORE)
        unpin_one_more();
    else if (pin == PIN_OWN && thread_self != &thread_nobody)
        __atomic_store_n(&thread_self->pinned, 0, __ATOMIC_RELEASE);
}

void pin_epoch(void) { epoch++; }

/* A thread that a signal handler ended in the middle of a hook stays pinned. So one call in 64 asks the kernel whether
 * it is dead. */
static bool is_dead(uint32_t slot) {
    enum { ONE_IN = 64 };
    static uint32_t asked;
    const struct snap_thread *record = thread_record(slot);
    return record && ++asked % ONE_IN == 0 && has_died(__atomic_load_n(&record->tid, __ATOMIC_RELAXED));
}

bool pin_all_quiet(uintptr_t slot) {
    bool all = strays_quiet(slot);
    for (uint32_t i = SNAP_THREAD_FIRST; i < thread_slots(); i++) {
        struct thread *thread = thread_at(i);
        uintptr_t pinned = thread ? __atomic_load_n(&thread->pinned, __ATOMIC_ACQUIRE) : 0;
        if (!thread || thread->quiet == epoch) continue;
        if (!pinned || (thread == thread_self && pinned == slot) || thread_has_ended(i) || is_dead(i))
            thread->quiet = epoch;
        else
            all = false;
    }
    return all;
}

static void pin_abandon(void) {
    memset(strays, 0, sizeof strays);
    more_strays = 0;
}
FORKED(pin_abandon);
