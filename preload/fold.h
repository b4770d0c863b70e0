/* fold.h — room for new call stacks when there is none: stacks of which nothing lives give up their ids.
 * In: the wish for room. Out: free ids of sites, and free words of stacks. What was ever counted at such a stack goes
 * to an outer one, so that totals stay exact; which inner stack it was is forgotten, and counted (SNAP_LOST_FOLDED).
 *
 * No thread waits. Ids that go are hidden first, so that nobody finds them any more; they are given away when every
 * thread has been seen twice without one in its hands (pin_begin). docs/stacks.md says why twice. All of that is done
 * in slices of half a millisecond, by whoever comes by with a stack that takes its time anyway. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "ledger.h"
#include "os.h"

#pragma GCC visibility push(hidden)

extern bool fold_wanted;
/* How often a stack was new while there was little room; after how often it is worth looking for more; or after how
 * many lost ones (SNAP_LOST_STACKS). */
extern uint64_t fold_wants, fold_wants_until, fold_losses_until;

/* There was no room for a stack, or soon will be none. */
static inline void fold_want(void) {
    if (__atomic_add_fetch(&fold_wants, 1, __ATOMIC_RELAXED) >= os_load(&fold_wants_until))
        __atomic_store_n(&fold_wanted, true, __ATOMIC_RELAXED);
}

/* Stacks whose outer part has found no room are lost one after the other without asking for any. */
static inline void fold_note_losses(void) {
    if (unlikely(os_load(&ledger_head->lost[SNAP_LOST_STACKS]) >= os_load(&fold_losses_until)))
        __atomic_store_n(&fold_wanted, true, __ATOMIC_RELAXED);
}

/* So many ids will go while more are being looked for. */
extern uint32_t fold_reserve;

/* Whether so few of all ids are free that it is time to look for more. */
static inline bool fold_is_short(uint64_t free, uint64_t all) {
    return free < all / 64 + __atomic_load_n(&fold_reserve, __ATOMIC_RELAXED);
}

/* Does the next slice, if it can be done now. The caller has no ids in its hands, whatever its pin `slot` says. */
void fold_step(uintptr_t slot);

/* At the start. */
void fold_begin(void);
/* In a forked child. */
void fold_abandon(void);

#pragma GCC visibility pop

#endif
