/* strict.c — see strict.h. */
#include "preload/base/strict.h"

#include <sys/syscall.h>

#include "preload/base/forked.h"
#include "preload/shared/os.h"

static uint32_t threads; /* in the sandbox, or on their way into it */
static int (*clock_before)(clockid_t clock, struct timespec *now);
static struct timespec monotonic, wall; /* when the time began to stand still */

static int stopped_clock(clockid_t clock, struct timespec *now) {
    *now = clock == CLOCK_REALTIME ? wall : monotonic;
    return 0;
}

void strict_enter(void) {
    if (!__atomic_fetch_add(&threads, 1, __ATOMIC_SEQ_CST)) {
        clock_before = os_clock;
        os_read_clock(CLOCK_MONOTONIC, &monotonic);
        os_read_clock(CLOCK_REALTIME, &wall);
    }
    __atomic_store_n(&os_clock, stopped_clock, __ATOMIC_RELEASE);
    __atomic_store_n(&os_calls_forbidden, true, __ATOMIC_RELEASE);
}

void strict_leave(void) {
    if (__atomic_sub_fetch(&threads, 1, __ATOMIC_SEQ_CST)) return;
    __atomic_store_n(&os_calls_forbidden, false, __ATOMIC_RELEASE);
    __atomic_store_n(&os_clock, clock_before, __ATOMIC_RELEASE);
}

/* A thread in the sandbox cannot fork, so no thread of the child is in it. */
static void strict_abandon(void) {
    if (!threads) return;
    threads = 1;
    strict_leave();
}
FORKED(strict_abandon);
