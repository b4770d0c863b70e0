/* fold.h — room for new call stacks when there is none, and no more memory for many runs than for some: stacks of which
 * nothing lives give up their ids.
 * In: the wish for room, runs that end. Out: free ids of sites, and free words of stacks. What was ever counted at such
 * a stack goes to an outer one, so that totals stay exact; which inner stack it was is forgotten, and counted
 * (SNAP_LOST_FOLDED).
 *
 * No thread waits. Ids that go are hidden first, so that nobody finds them any more; they are given away when every
 * thread has been seen twice without one in its hands (pin_begin). docs/stacks.md says why twice. All of that is done
 * in slices of half a millisecond, by whoever comes by with a stack that takes its time anyway. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* Does the next slice of what was asked for (budget.h), if it can be done now. The caller has no ids in its hands,
 * whatever its pin `slot` says. */
void fold_step(uintptr_t slot);

/* At the start. */
void fold_begin(void);

#pragma GCC visibility pop

#endif
