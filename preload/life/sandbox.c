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

static bool stopped; /* our threads, for the call that is under way */

/* Without a filter there is none to enter by. */
static bool may_succeed(long number, long a, long b, const void *c) {
    if (number == SYS_prctl) return a == PR_SET_SECCOMP && (b != SECCOMP_MODE_FILTER || c);
    if (number != SYS_seccomp || a == SECCOMP_GET_ACTION_AVAIL || a == SECCOMP_GET_NOTIF_SIZES) return false;
    return a == SECCOMP_SET_MODE_STRICT ? !b && !c : c != NULL;
}

enum { PAUSES = 1 << 28 }; /* some seconds */

/* One thread at a time. Who waits asks nothing of the kernel, either: it may find itself in the sandbox that the other
 * one entered for all (TSYNC), and died in. */
static bool take_turn(void) {
    uint32_t *entering = &process_page.entering, nobody = 0;
    for (int i = 0; !__atomic_compare_exchange_n(entering, &nobody, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
         i++) {
        if (i == PAUSES) return false;
        __builtin_ia32_pause();
        nobody = 0;
    }
    if (!seal_is_set()) return true;
    __atomic_store_n(entering, 0, __ATOMIC_RELEASE);
    return false;
}

/* Sealed before: with TSYNC other threads are in it as soon as the call succeeds, and a signal handler may be called
 * before it returns. A thread of ours would be in it, too. */
bool sandbox_enter(long number, long a, long b, const void *c) {
    if (!may_succeed(number, a, b, c) || seal_is_set() || process_is_vfork_child() || !take_turn()) return false;
    stopped = control_stop();
    seal_set();
    return true;
}

/* With TSYNC, the id of a thread that could not enter is a failure; with a listener, its descriptor is none. */
static bool has_succeeded(long number, long flags, long result) {
    return result == 0 || (result > 0 && number == SYS_seccomp && flags & SECCOMP_FILTER_FLAG_NEW_LISTENER);
}

void sandbox_entered(long number, long flags, long result) {
    if (!has_succeeded(number, flags, result)) {
        seal_lift();
        if (stopped) control_resume();
    }
    __atomic_store_n(&process_page.entering, 0, __ATOMIC_RELEASE);
}
