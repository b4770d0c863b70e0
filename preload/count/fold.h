/* fold.h — makes room for new call stacks, and keeps many runs from taking more memory than few: stacks without live
 * blocks give up their ids. In: the wish for room, runs that end. Out: free ids of sites, and free words of stacks. The
 * counts of such a stack go to an outer one, so that totals stay exact. Which inner stack it was is forgotten, and the
 * report says how often (SNAP_LOST_FOLDED).
 *
 * No thread waits. Ids that go are hidden first, so that no thread finds them any more. They are given away when every
 * thread has been seen twice without one in use (pin_begin); docs/stacks.md says why twice. All of that is done in
 * slices of half a millisecond, by threads that come by with a stack that takes its time anyway. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* Does the next slice of the work that was asked for (budget.h), if it can be done now. The caller uses no ids,
 * whatever its pin `slot` says. */
void fold_step(uintptr_t slot);

/* At the start. */
void fold_begin(void);

#pragma GCC visibility pop

#endif
