/* state_saved.h — the values that an earlier process left in the folder of a prefix (PREFIX.state).
 * In: a new loop, locked. Out: its folder, locked against other processes, and the values of the latest committed
 * generation. No hook may call this function. */
#ifndef MEMSTOW_STATE_SAVED_H
#define MEMSTOW_STATE_SAVED_H

#include "preload/stacks/stack.h"
#include "preload/state/state_loop.h"

#pragma GCC visibility push(hidden)

/* Opens and locks the folder, and reads its values into the loop. `caller`: the call stack at which the values are
 * counted. Returns 0 or -errno, as memstow_state_open does. */
int state_saved_open(struct state_loop *loop, const char *prefix, struct caller caller);

#pragma GCC visibility pop

#endif
