/* clock.c — see clock.h. */
#include "preload/base/clock.h"

#include <stdbool.h>
#include <sys/syscall.h>

#include "preload/shared/os.h"

typedef int clock_function(clockid_t clock, struct timespec *now);

static clock_function *before;          /* os_clock before the stop */
static struct timespec monotonic, wall; /* the times of the stop */

static int stopped_clock(clockid_t clock, struct timespec *now) {
    *now = clock == CLOCK_REALTIME ? wall : monotonic;
    return 0;
}

static clock_function *clock_in_use(void) { return __atomic_load_n(&os_clock, __ATOMIC_ACQUIRE); }
static void clock_use(clock_function *function) { __atomic_store_n(&os_clock, function, __ATOMIC_RELEASE); }

void clock_ask_kernel(void) {
    __atomic_store_n(&os_ticks_forbidden, true, __ATOMIC_RELAXED);
    if (clock_in_use() != stopped_clock) clock_use(NULL);
}

void clock_stop(void) {
    clock_function *present = clock_in_use();
    if (present == stopped_clock) return;
    before = present;
    os_call(SYS_clock_gettime, CLOCK_MONOTONIC, &monotonic);
    os_call(SYS_clock_gettime, CLOCK_REALTIME, &wall);
    clock_use(stopped_clock);
}

void clock_go_on(void) {
    if (clock_in_use() == stopped_clock) clock_use(before);
}
