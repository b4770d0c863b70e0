/* fold.h — room for new call stacks when there is none: stacks of which nothing lives give up their ids.
 * In: the wish for room. Out: free ids of sites and nodes. What was ever counted at such a stack goes to an outer one,
 * so that totals stay exact; which inner stack it was is forgotten, and counted (SNAP_LOST_FOLDED).
 *
 * No thread waits. Ids that go are hidden first, so that nobody finds them any more; they are given away when every
 * thread has been seen twice without one in its hands (account_pin). docs/stacks.md says why twice. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* There was no room for a stack, or soon will be none. */
extern bool fold_wanted;
static inline void fold_want(void) { __atomic_store_n(&fold_wanted, true, __ATOMIC_RELAXED); }

/* Whether so few of all ids are free that it is time to look for more: finding them takes its time. */
static inline bool fold_is_due(uint64_t free, uint64_t all) { return free < all / 8; }

/* Does the next step, if it can be done now. The caller has no ids in its hands, whatever its pin `slot` says. */
void fold_step(uintptr_t slot);

/* In a forked child. */
void fold_abandon(void);

#pragma GCC visibility pop

#endif
