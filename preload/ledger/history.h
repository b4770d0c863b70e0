/* history.h — memory over time: two curves and the marks on them, in the ledger.
 * In: the running totals of memory, whenever they have changed; live bytes of devices; what happens to owners. Out:
 * records of the types SNAP_POINT, SNAP_CUDA_POINT, SNAP_MARK and SNAP_OWNER_MARK. It has no thread. A thread that
 * finds another thread at work on a curve adds no point; the next change adds one. A change of less than
 * SNAP_POINT_STEP costs only a comparison. A larger change that adds no point also reads the processor's ticks. */
#ifndef MEMSTOW_HISTORY_H
#define MEMSTOW_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/seal.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* ticks: when the newest point was added (os_ticks). high: the height of the highest point in the present interval. */
struct history_gate {
    uint64_t ticks, high;
};
extern struct history_gate history_memory, history_on_devices;
extern uint64_t history_total;                          /* the bytes at the newest point of the memory curve */
extern uint64_t history_devices[SNAP_POINT_DEVICES];    /* by device: its bytes at the newest point */
extern const int64_t *history_live[SNAP_POINT_DEVICES]; /* by device: points to the number of its live bytes; NULL:
                                                         * unknown */

/* Whether a change makes a point. `bytes`: the value after the change. `noted`: this value at the newest point.
 * `height`: the sum of the curve's values after the change. Two conditions must be true:
 *
 * - `bytes` and `noted` differ by more than SNAP_POINT_STEP.
 * - Some time has passed since the newest point, or `height` is above all points of the present interval (points.h).
 *
 * Changes that come too soon make no points of their own. So, together with the next point, history_add adds a point
 * for the values that these changes led to. */
static inline bool history_wants(const struct history_gate *gate, const uint64_t *noted, uint64_t bytes,
                                 uint64_t height) {
    enum { SOON = 1 << 20 };
    if (likely(bytes - os_load(noted) + SNAP_POINT_STEP <= 2 * (uint64_t)SNAP_POINT_STEP)) return false;
    if (unlikely(seal_is_set())) return false; /* in the strictest sandbox, reading the clock is SIGSEGV */
    return height > os_load(&gate->high) || os_ticks() - os_load(&gate->ticks) >= SOON;
}

struct history_totals {
    uint64_t host, mapped;
};
/* Adds a point. Call it when history_wants has returned true. `before` and `now`: the values just before and after the
 * change. `run` and `node` are the owners of the change; 0: none. */
void history_add(struct history_totals before, struct history_totals now, uint32_t run, uint32_t node);
void history_add_device(uint32_t device, uint64_t before);

/* Adds a mark, with the time and the memory of the process. A hook may add only the mark of a refused request
 * (OUT_OF_MEMORY), and those of a rescue (TRIGGER, and its outcomes). Returns the mark's time; 0: no mark was added. */
uint64_t history_mark(const struct snap_mark *mark);
/* Adds what an owner has at the time of a mark. Only one thread at a time may call this function. False: the record was
 * not added. */
bool history_note_owner(const struct snap_owner_mark *note);

#pragma GCC visibility pop

#endif
