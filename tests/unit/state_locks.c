// No lock of the store is held while the memory of a value is freed, because that takes long: calls on other threads
// would fail meanwhile.
// build: -Wl,--wrap=stow_file_close
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "preload/count/account.h"
#include "preload/count/site.h"
#include "preload/ledger/ledger.h"
#include "preload/owners/owned.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_owner.h"
#include "preload/state/state_store.h"

static int64_t loop;
static struct state_loop *known;
static int closed;

void __real_stow_file_close(struct stow_file *self);
void __wrap_stow_file_close(struct stow_file *self);

void __wrap_stow_file_close(struct stow_file *self) {
    if (stow_file_is_still(self)) {
        closed++;
        cr_expect(!lock_is_held(&state_registry), "the registry is held");
        cr_expect(!lock_is_held(&known->changes), "the loop is held");
    }
    __real_stow_file_close(self);
}

static uint32_t put(const char *id) {
    struct state_header header = {.type = "t", .length = 4096};
    const struct state_source source = {&header, NULL};
    int64_t owner = state_put(loop, id, &source, (struct caller){0});
    cr_assert_gt(owner, 0, "%ld", owner);
    return (uint32_t)owner;
}

static void begin(void) {
    static const struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    const struct memstow_state_options options = {.size = sizeof options};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
    loop = state_open("loop", &options, (struct caller){0});
    cr_assert_gt(loop, 0, "%ld", loop);
    known = state_loop_known(loop);
    cr_assert_eq(state_begin(loop), 1);
}

TestSuite(state_locks, .init = begin);

Test(state_locks, a_move) {
    uint32_t owner = put("x");
    int64_t moved = state_owner_store.move(owner, true, (struct move_end){0});
    if (moved == -ENOTSUP) cr_skip_test("no disk here");
    cr_assert_eq(moved, 4096, "%ld", moved);
    cr_expect_eq(closed, 1);
    cr_expect_eq(state_owner_store.move(owner, false, (struct move_end){0}), 4096);
    cr_expect_eq(closed, 2);
}
