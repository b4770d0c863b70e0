/* state_begin.h — for unit tests of the store: a ledger, and one loop whose first iteration has begun. */
#ifndef MEMSTOW_STATE_BEGIN_H
#define MEMSTOW_STATE_BEGIN_H

#include <criterion/criterion.h>

#include "preload/count/account.h"
#include "preload/count/site.h"
#include "preload/ledger/ledger.h"
#include "preload/state/state_store.h"

/* Begins a ledger, a loop, and the loop's first iteration. Returns the loop's number. ram_limit is that of
 * memstow_state_options. */
static inline int64_t state_begin_loop(uint64_t ram_limit) {
    static const struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    const struct memstow_state_options options = {.size = sizeof options, .ram_limit = ram_limit};
    cr_assert(ledger_begin(&who));
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, "unit");
    int64_t loop = state_open("loop", &options, (struct caller){0});
    cr_assert_gt(loop, 0, "%ld", loop);
    cr_assert_eq(state_begin(loop), 1);
    return loop;
}

#endif
