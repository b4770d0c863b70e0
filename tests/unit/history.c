// The curve of memory over time: one thread adds to it at a time, in the order of time.
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "preload/ledger/history.c"

enum { SECOND = 1000000000 };
static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/memstow-unit-%d.mst", (int)getpid());
    struct ledger_identity unit = {.path = path, .name = "unit", .exe = "/bin/unit", .command = "unit test"};
    cr_assert(ledger_begin(&unit));
}

static void end(void) { unlink(path); }

/* Thread A reads the clock. Then thread B reads the clock, enters, and stores its time. When A looks at B's time,
 * that time is later than A's own. */
Test(history, a_thread_that_came_after_the_look_at_the_clock_is_not_interrupted, .init = begin, .fini = end) {
    memory.busy_since = os_now() + 60 * (uint64_t)SECOND;
    cr_assert_eq(curve_enter(&memory), 0);
    memory.busy_since = os_now();
    cr_assert_eq(curve_enter(&memory), 0);
    memory.busy_since = os_now() - 2 * (uint64_t)SECOND;
    cr_assert(curve_enter(&memory), "a thread that was left by a jump keeps nobody away");
}

/* Thread A reads the clock; thread B enters, adds a point and leaves; A enters with its earlier time. */
Test(history, an_earlier_time_is_added_behind_a_later_one, .init = begin, .fini = end) {
    const uint64_t values[3] = {1 << 20}, more[3] = {2 << 20}, now = os_now();
    curve_add(&memory, now, values, values);
    curve_add(&memory, now - 100, values, more);
    cr_assert_eq(memory.points.count, 2);
    cr_assert_lt(point_at(0)[0], point_at(1)[0]);
}
