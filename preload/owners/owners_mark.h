/* owners_mark.h — marks on the curves of memory over time, with what each owner has at that time.
 * In: a mark, which says that a run begins or ends, or that a move was requested. Out: the mark, and a record for each
 * model, custom and value of the store whose memory has changed since the last such mark. Call it outside of hooks, and
 * hold no lock. */
#ifndef MEMSTOW_OWNERS_MARK_H
#define MEMSTOW_OWNERS_MARK_H

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Adds the mark to the history. The records of owners are left out if sums over all sites have taken much time already,
 * or if another thread has noted owners for a later mark. */
void owners_mark(const struct snap_mark *mark);

#pragma GCC visibility pop

#endif
