/* trace.h — the trace of decisions: lines of JSON in a ring, which is a section of the ledger.
 * In: lines, from any thread. Out: the same lines with a number and a time, in a file that outlives the process. The
 * functions allocate nothing but the ring, which is made with the first line. snapshot.h (snap_ring) says how a reader
 * recognises whole lines. */
#ifndef MEMSTOW_TRACE_H
#define MEMSTOW_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "preload/base/line.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { TRACE_TEXT_MOST = LINE_MOST, TRACE_SIZE = 1 << 20 };

/* Adds a JSON object that was checked before. Returns 0, -ENODEV (no ledger), -EINVAL (too long), -ENOMEM (the ledger
 * cannot grow), -EBUSY (the lock was held too long). After -ENOMEM and -EBUSY the line is counted as lost. */
int trace_add(const char *text, size_t length);

/* Ends a line that memstow built, and adds it. */
void trace_add_line(struct line *line);

/* Adds a text that was not checked before. -EINVAL: it is not a JSON object, or has members that only memstow may set.
 * Other results are those of trace_add. */
int trace_add_foreign(const char *text, size_t length);

/* Reads the line at *position, or the oldest line if that one is gone. Then moves *position to the next line. Position
 * 0 means the oldest line. Returns the line's length and sets *number to the line's number. Returns 0 if
 * there is no line. `to` must hold SNAP_LINE_MOST bytes. */
size_t trace_read(uint64_t *position, char *to, uint64_t *number);

/* In a forked child: the trace begins anew. */
void trace_abandon(void);

#pragma GCC visibility pop

#endif
