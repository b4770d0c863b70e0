/* trace.h — the trace of decisions: lines of JSON in a ring, which is a section of the ledger.
 * In: lines, from any thread, outside of hooks. Out: the same with a number and a time, in a file that outlives the
 * process. Nothing is allocated; the ring is made with the first line. snapshot.h (snap_ring) says how a reader tells
 * whole lines. */
#ifndef MEMSTOW_TRACE_H
#define MEMSTOW_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "preload/base/line.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { TRACE_TEXT_MOST = LINE_MOST, TRACE_ROOM = 1 << 20 };

/* Adds an object that has been checked. 0, or -errno: -ENODEV, -EINVAL (too long), -ENOMEM (no room in the ledger),
 * -EBUSY (somebody has been at it for long); then it is counted as lost. */
int trace_add(const char *text, size_t length);

/* Ends a line of memstow's own, and adds it. */
void trace_add_line(struct line *line);

/* The same with any text: -EINVAL when it is no object, or has members that are memstow's own. */
int trace_add_foreign(const char *text, size_t length);

/* The line at *place, or the oldest that is left, and moves on; begin with 0. Its length and number; 0: there is none.
 * `to` has room for SNAP_LINE_MOST. */
size_t trace_read(uint64_t *place, char *to, uint64_t *number);

/* In a forked child: its trace begins anew. */
void trace_abandon(void);

#pragma GCC visibility pop

#endif
