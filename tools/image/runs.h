/* runs.h — turns the call stacks of a running process into nodes and segments (snapshot.h), the form that all other
 * parts read.
 * In: the words of SNAP_RUN, and totals whose stacks are the process's numbers (places). Out: nodes and segments of
 * those stacks, parents first, and totals that refer to the nodes. */
#ifndef MEMSTOW_RUNS_H
#define MEMSTOW_RUNS_H

#include "tools/image/image.h"

/* Replaces the words of the process by nodes and segments. A stack that leads out of the table, as in a hostile file,
 * is cut there. Returns 0, or -1: no memory. */
int runs_unfold(struct image *image);

#endif
