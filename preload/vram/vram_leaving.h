/* vram_leaving.h — blocks whose content leaves a device for memory of the host, one behind the other on one stream.
 * While the device copies a block, those before it are ended, so that their unmapping costs no time of the copies.
 * In: blocks that the caller has, with a backup in memory. Out: each of them, in turn, when its copy is complete or has
 * failed. One thread at a time, in the ring's context. */
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
    /* Takes a block whose copy is over: VRAM_REFUSAL_DONE, or why it stays, with the driver's error. */
    void (*over)(void *context, struct vram_block *block, enum vram_refusal why, int error);
    void *context;
    struct vram_leaving_block {
        struct vram_block *block;
        uint32_t parts; /* that have not arrived */
        enum vram_refusal why;
        int error;
    } blocks[VRAM_LEAVING]; /* a queue: by number, from `first` to before `next` */
    uint64_t first, next;
    struct vram_leaving_part {
        struct vram_leaving_block *of; /* NULL: nothing goes on in this lane */
        char *to;
        uint64_t bytes;
    } parts[VRAM_SLOTS];
    uint64_t turn; /* the number of parts so far: lanes take turns */
};

/* Adds a block, and ends earlier blocks whose copies are over. The added block itself does not end before the next
 * call: the caller may use it until then. */
void vram_leaving_add(struct vram_leaving *self, struct vram_block *block);
/* The same for a block whose copy is over, or was never begun. */
void vram_leaving_add_copied(struct vram_leaving *self, struct vram_block *block, enum vram_refusal why, int error);
/* Waits until the copies of all blocks are over, but ends none. The last block's result. */
struct vram_leaving_block *vram_leaving_wait(struct vram_leaving *self);
/* Ends all blocks. */
void vram_leaving_end(struct vram_leaving *self);

static inline bool vram_leaving_any(const struct vram_leaving *self) { return self->first != self->next; }

#pragma GCC visibility pop

#endif
