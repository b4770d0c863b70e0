// The limit of a loop's values in memory holds even if several threads put values at once, or if values are moved at
// the same time.
// build: -Wl,--wrap=state_bytes_in_memory
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>

#include "preload/owners/owned.h"
#include "preload/state/state_bytes.h"
#include "preload/state/state_owner.h"
#include "state_begin.h"

enum { PAGE = 4096, TURNS = 200 };

static int64_t loop;
static bool is_joined, fails;

static int64_t put(const char *id) {
    struct state_header header = {.type = "t", .length = PAGE};
    const struct state_source source = {&header, NULL};
    return state_put(loop, id, &source, (struct caller){0});
}

int __real_state_bytes_in_memory(struct state_bytes *self, const struct state_source *source);
int __wrap_state_bytes_in_memory(struct state_bytes *self, const struct state_source *source);

/* While the first value is written, another one is put, as if another thread did it. */
int __wrap_state_bytes_in_memory(struct state_bytes *self, const struct state_source *source) {
    if (fails) return -ENOMEM;
    if (is_joined) {
        is_joined = false;
        int64_t owner = put("second");
        if (owner == -ENOTSUP) cr_skip_test("no disk here");
        cr_expect_gt(owner, 0, "%ld", owner);
    }
    return __real_state_bytes_in_memory(self, source);
}

static uint32_t place_of(const char *id) {
    struct memstow_state_value value;
    cr_assert_eq(state_get(loop, id, &value), 0);
    os_unmap(value.view, value.view_length);
    return value.place;
}

static void begin(void) { loop = state_begin_loop(PAGE); }

TestSuite(state_limit, .init = begin);

Test(state_limit, two_puts_at_once) {
    is_joined = true;
    cr_assert_gt(put("first"), 0);
    cr_expect_eq(place_of("first"), MEMSTOW_STATE_MEMORY);
    cr_expect_eq(place_of("second"), MEMSTOW_STATE_FILE);
}

Test(state_limit, a_put_that_failed) {
    fails = true;
    cr_assert_eq(put("first"), -ENOMEM);
    fails = false;
    cr_assert_gt(put("second"), 0);
    cr_expect_eq(place_of("second"), MEMSTOW_STATE_MEMORY);
}

static bool is_over;

static void *move_on(void *owner) {
    for (bool out = true; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); out = !out)
        cr_expect_geq(state_owner_store.move(*(uint32_t *)owner, out, (struct move_end){0}), 0);
    return NULL;
}

/* This test is for ThreadSanitizer: a put looks at places of values while a move changes them. */
Test(state_limit, puts_and_moves) {
    pthread_t mover;
    int64_t first = put("first"), moved = state_owner_store.move((uint32_t)first, true, (struct move_end){0});
    uint32_t owner = (uint32_t)first;
    if (moved == -ENOTSUP) cr_skip_test("no disk here");
    cr_assert_eq(moved, PAGE, "%ld", moved);
    cr_assert_eq(pthread_create(&mover, NULL, move_on, &owner), 0);
    for (int i = 0; i < TURNS; i++) cr_assert_gt(put("second"), 0);
    __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
    pthread_join(mover, NULL);
    cr_expect_eq(state_close(loop, false), 0);
}
