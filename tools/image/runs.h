/* runs.h — stacks as a running process keeps them → nodes and segments, as everything else reads them.
 * In: the words of SNAP_RUN, and totals whose stacks are places. Out: nodes, parents first, and segments, for those
 * stacks; and totals that refer to them. */
#ifndef MEMSTOW_RUNS_H
#define MEMSTOW_RUNS_H

#include "tools/image/image.h"

/* 0, or -1: no memory. Stacks that lead nowhere, as in a hostile file, become empty where they do. */
int runs_unfold(struct image *image);

#endif
