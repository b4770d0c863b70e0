/* vram_leaving.h — copies blocks from a device to memory of the host, one after the other on one stream. While the
 * device copies a block, the earlier ones whose copies are over are handed to `over`, which unmaps them. So
 * unmapping does not delay the copies.
 * In: blocks that the caller has taken (vram_table.h), with a backup in memory. Out: each block, in order, when its
 * copy is complete or has failed. Only one thread at a time may call, in the ring's context. */
#ifndef MEMSTOW_VRAM_LEAVING_H
#define MEMSTOW_VRAM_LEAVING_H

#include "preload/vram/vram_block.h"
#include "preload/vram/vram_refusal.h"
#include "preload/copies/vram_ring.h"

#pragma GCC visibility push(hidden)

enum { VRAM_LEAVING = VRAM_SLOTS + 2 };

struct vram_leaving {
    const struct vram_driver *driver;
    struct vram_ring *ring;
    /* Gets a block whose copy has ended. `why`: VRAM_REFUSAL_DONE, or the reason why the block stays on its device.
     * `error`: the driver's, or 0. */
    void (*over)(void *context, struct vram_block *block, enum vram_refusal why, int error);
    void *context;
    struct vram_leaving_block {
        struct vram_block *block;
        uint32_t parts; /* how many copies of its parts are not over */
        enum vram_refusal why;
        int error;
    } blocks[VRAM_LEAVING]; /* a queue: block N is at N % VRAM_LEAVING; N goes from `first` to `next` - 1 */
    uint64_t first, next;
    struct vram_leaving_part {
        struct vram_leaving_block *of; /* NULL: no part is in this lane of the ring (vram_ring.h) */
        char *to;
        uint64_t bytes;
    } parts[VRAM_SLOTS];
    uint64_t turn; /* how many parts were begun so far; part N uses lane N % VRAM_SLOTS */
};

/* Begins to copy a block. Calls `over` for the earlier blocks whose copies have ended. Does not yet call `over` for the
 * added block itself, so the caller may use this block until it calls a function of vram_leaving.h again. */
void vram_leaving_add(struct vram_leaving *self, struct vram_block *block);
/* As vram_leaving_add, for a block that needs no copy: its copy has ended with this result, or was never begun. */
void vram_leaving_add_copied(struct vram_leaving *self, struct vram_block *block, enum vram_refusal why, int error);
/* Waits until the copies of all blocks have ended, but does not call `over`. Returns the entry of the block that
 * was added last; the entry has the result of this block's copy. */
struct vram_leaving_block *vram_leaving_wait(struct vram_leaving *self);
/* Waits until the copies of all blocks have ended, and calls `over` for each of the blocks. */
void vram_leaving_end(struct vram_leaving *self);

static inline bool vram_leaving_any(const struct vram_leaving *self) { return self->first != self->next; }

#pragma GCC visibility pop

#endif
