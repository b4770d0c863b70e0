/* history.h — memory over time: two curves and the marks on them, in the ledger.
 * In: running totals whenever they are noted, live bytes of devices, and what happens to owners. Out: SNAP_POINT,
 * SNAP_CUDA_POINT, SNAP_MARK. It has no thread and waits for nobody: a thread that finds another one at work adds no
 * point, and the next change does. A change of less than SNAP_POINT_STEP costs a comparison, and one that comes soon
 * after another reads a register. */
#ifndef MEMSTOW_HISTORY_H
#define MEMSTOW_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/seal.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* When the last point was added, and the highest one of its interval. */
struct history_gate {
    uint64_t ticks, high;
};
extern struct history_gate history_memory, history_on_devices;
extern uint64_t history_total;                          /* at the last point */
extern uint64_t history_devices[SNAP_POINT_DEVICES];    /* the same, for each device */
extern const int64_t *history_live[SNAP_POINT_DEVICES]; /* where the live bytes of each device are; NULL: unknown */

/* Whether a change makes a point. It does if `bytes` have moved since `noted` and some time has passed, or if they are
 * a new height of the interval. A change that came too soon is not lost: in front of the next point, another point is
 * added for the bytes just before it. */
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
/* Adds a point; call them if history_wants. `run` and `node` are the owners of the change; 0: none. */
void history_add(struct history_totals before, struct history_totals now, uint32_t run, uint32_t node);
void history_add_device(uint32_t device, uint64_t before);

/* Adds a mark: time and memory of the process are filled in. Outside of hooks only, except OUT_OF_MEMORY and the
 * TRIGGER of a rescue. */
void history_mark(const struct snap_mark *mark);

#pragma GCC visibility pop

#endif
