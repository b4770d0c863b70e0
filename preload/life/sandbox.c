/* sandbox.c — see sandbox.h. */
#include "preload/life/sandbox.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/control/control.h"
#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"
#include "preload/life/process.h"
#include "preload/base/seal.h"

static bool stopped; /* our threads were stopped, because some calls that lead into a sandbox are in progress */

/* Whether the call may lead into a sandbox. A call that is to set a filter, but passes none, fails, so it leads into no
 * sandbox. Two operations of seccomp only ask what the kernel can do, so they lead into no sandbox either. */
static bool may_succeed(long number, long a, long b, const void *c) {
    if (number == SYS_prctl) return a == PR_SET_SECCOMP && (b != SECCOMP_MODE_FILTER || c);
    if (number != SYS_seccomp || a == SECCOMP_GET_ACTION_AVAIL || a == SECCOMP_GET_NOTIF_SIZES) return false;
    return a == SECCOMP_SET_MODE_STRICT ? !b && !c : c != NULL;
}

/* Whether the call leads into the strictest sandbox. */
static bool is_strict(long number, long a, long b) {
    return number == SYS_prctl ? b == SECCOMP_MODE_STRICT : a == SECCOMP_SET_MODE_STRICT;
}

/* SHORT_PATIENCE: how long control_stop may wait for the end of our threads, unless a filter is set for all threads.
 * PAUSES: how often take_turn tries to get the turn. Another thread may keep the turn while it waits in control_stop.
 * So all tries together take longer than SHORT_PATIENCE, even on a processor of 5 GHz on which the instruction `pause`
 * takes only 10 cycles, and a whole try about 20. */
enum { SHORT_PATIENCE = 2 /* seconds */, PAUSES = 1 << 29 };

/* One thread at a time has the turn: it stops our threads or starts them again. Meanwhile another thread that enters a
 * sandbox waits here, without a system call. Returns false if the wait was too long, or if this is a signal handler on
 * the thread that has the turn. */
static bool take_turn(void) {
    const void *nobody = NULL, *self = __builtin_thread_pointer();
    for (int i = 0; i < PAUSES; i++) {
        if (__atomic_compare_exchange_n(&tracked_page.turn, &nobody, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
        if (nobody == self) return false;
        __builtin_ia32_pause();
        nobody = NULL;
    }
    return false;
}

static void end_turn(bool taken) {
    if (taken) __atomic_store_n(&tracked_page.turn, NULL, __ATOMIC_RELEASE);
}

/* Takes the calling thread out of the count tracked_page.entering. Returns true if no other thread is entering a
 * sandbox now. Returns false if another thread is entering one, or if this process was forked after the thread was
 * counted: in such a child the count is 0. */
static bool sandbox_count_out(void) {
    uint32_t seen = __atomic_load_n(&tracked_page.entering, __ATOMIC_RELAXED);
    while (seen && !__atomic_compare_exchange_n(&tracked_page.entering, &seen, seen - 1, false, __ATOMIC_ACQ_REL,
                                                __ATOMIC_RELAXED))
        ;
    return seen == 1;
}

/* Whether the call sets a filter for all threads. Such a filter could kill a thread of ours that is still at work, so
 * sandbox_enter waits longer for the end of our threads. A filter for the calling thread alone cannot kill a thread of
 * ours. So if one has not ended after SHORT_PATIENCE, sandbox_enter leaves it outside of the sandbox, where it ends
 * later. If the program then sets a filter for all threads, await_our_threads waits for this end. */
static bool takes_all(long number, long operation, long flags) {
    return number == SYS_seccomp && operation == SECCOMP_SET_MODE_FILTER && flags & SECCOMP_FILTER_FLAG_TSYNC;
}

static void await_our_threads(void) {
    bool turn = take_turn();
    if (turn) control_await();
    end_turn(turn);
}

/* The seal is set before the call, because code of ours may run inside the sandbox before the call returns: with TSYNC,
 * all threads are in the sandbox as soon as the call succeeds, and a signal handler may interrupt this thread. */
bool sandbox_enter(long number, long a, long b, const void *c) {
    if (!may_succeed(number, a, b, c)) return false;
    if (seal_is_for_good() && !is_strict(number, a, b)) {
        if (takes_all(number, a, b)) await_our_threads();
        return false;
    }
    if (!seal_is_for_good() && process_is_vfork_child()) return false;
    bool turn = take_turn();
    bool first = !__atomic_fetch_add(&tracked_page.entering, 1, __ATOMIC_SEQ_CST);
    if (first && turn && !seal_is_for_good())
        stopped = control_stop(takes_all(number, a, b) ? CONTROL_PATIENCE : SHORT_PATIENCE);
    seal_enter();
    end_turn(turn);
    if (is_strict(number, a, b)) os_forbid_calls();
    return true;
}

/* With TSYNC the result may be the id of a thread that could not enter, which is a failure. With a listener the result
 * is a descriptor, which is a success. */
static bool has_succeeded(long number, long flags, long result) {
    return result == 0 || (result > 0 && number == SYS_seccomp && flags & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

void sandbox_entered(long number, long a, long b, long result) {
    bool inside = has_succeeded(number, b, result);
    if (!inside && is_strict(number, a, b)) os_allow_calls();
    bool turn = !inside && take_turn();
    seal_leave(inside);
    bool last = sandbox_count_out();
    if (last && turn && !seal_is_set()) {
        if (stopped) control_resume();
        stopped = false;
        control_retry();
    }
    end_turn(turn);
}
