/* vram_block.h — a block of device memory that memstow serves: a range of addresses, and pieces of physical memory
 * mapped in it.
 * In: a size, a device, the devices with access. Out: memory at its addresses, or addresses without memory. Each step
 * counts what exists, so after any failure the same call continues where the last one stopped. One thread at a time. */
#ifndef MEMSTOW_VRAM_BLOCK_H
#define MEMSTOW_VRAM_BLOCK_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

enum {
    VRAM_PIECES = 64,
    VRAM_DEVICES = 64,
};
#define VRAM_PIECE ((uint64_t)64 << 20) /* larger only if there would be more than VRAM_PIECES */

enum vram_state {
    VRAM_LIVE,
    VRAM_STOWED, /* its content is in `backup`, or was discarded */
    /* freed. Its memory is given back when `event` has come. If it has no event, or a copy may go on: when its context
     * is quiet */
    VRAM_FREEING,
    VRAM_WRECK, /* freed, without an owner; the driver has not taken all of it back yet */
    VRAM_SPARE, /* freed, and kept with its memory for the next request of its size (vram_spare.h) */
};

/* Where `backup` lies. VRAM_DISCARDED: there is none. */
enum vram_backup_kind { VRAM_IN_MEMORY, VRAM_PINNED, VRAM_IN_FILE, VRAM_BACKUP_KINDS, VRAM_DISCARDED };

struct vram_block {
    struct vram_block *next, *before, *in_move;
    struct vram_block *lower, *higher;            /* in the tree of the table: addresses below and above */
    struct vram_block *freed_next, *freed_before; /* in the queue of freed blocks and wrecks, or in that of spares */
    struct vram_block *shelf_next, *shelf_before; /* on the shelf of its size */
    uint64_t at, size, asked;                     /* size: in whole granules */
    uint64_t rank;                                /* the tree has higher ranks above lower ones */
    bool in_tree;
    uint64_t piece;   /* bytes of each piece except the last */
    uint64_t devices; /* a bit for each device that may use it, including its own */
    uint32_t device, owner;
    bool in_stream;      /* requested in place of a pool */
    cuda_handle context; /* the context of the request */
    enum vram_state state;
    bool moving;
    uint8_t refused;               /* enum vram_refusal: why it never moves; VRAM_REFUSAL_DONE: it can move */
    bool mixed;                    /* other owners have parts of it */
    bool copied;                   /* a copy to or from it may go on: the driver has not said that it has ended */
    bool no_context;               /* the context in which it was freed has ended */
    uint32_t tried;                /* number of the last move that tried it */
    uint64_t searched, reached;    /* the last search for freed blocks, and for access, that tried it */
    uint32_t pieces, made, mapped; /* numbers of pieces: all, those with physical memory, those mapped */
    bool open;                     /* the devices have access */
    bool rdma;                     /* made so that network cards can use it */
    uint64_t id;                   /* its id for a program that asks the driver */
    uint64_t left_ns, trigger;     /* of the last move off its device; trigger 0: another request moved it */
    uint64_t number;               /* higher than the numbers of all earlier blocks */
    char *backup;
    enum vram_backup_kind backup_kind;
    cuda_handle event, event_context; /* where the event was recorded */
    const void *event_stream;         /* compared only: the stream may be gone */
    uint64_t event_number;            /* when it was recorded, in the order of `number` */
    cuda_memory memory[VRAM_PIECES];
};

/* --- steps; those that return a number return 0 or the driver's error --- */

/* Sets pieces and size. */
void vram_block_plan(struct vram_block *self, uint64_t bytes);
/* Reserves the addresses. */
int vram_block_reserve(const struct vram_driver *driver, struct vram_block *self);
/* Sets the devices that may use the block. A mapped block gets the access at once, any other when it is mapped. On
 * failure nothing has changed. */
int vram_block_open(const struct vram_driver *driver, struct vram_block *self, uint64_t devices);
/* Makes all its physical memory. On failure, it keeps as little as the driver allows. */
int vram_block_make(const struct vram_driver *driver, struct vram_block *self);
/* Makes the physical memory that the block lacks, maps it and grants access. On failure, it keeps as little memory as
 * the driver allows. */
int vram_block_fill(const struct vram_driver *driver, struct vram_block *self);
/* Frees the physical memory. False: the driver did not release all of it. */
bool vram_block_strip(const struct vram_driver *driver, struct vram_block *self);
/* Frees the physical memory and the addresses. False: the driver did not release all of it. */
bool vram_block_end(const struct vram_driver *driver, struct vram_block *self);

static inline uint64_t vram_block_piece_bytes(const struct vram_block *self, uint32_t i) {
    return i + 1 < self->pieces ? self->piece : self->size - (uint64_t)i * self->piece;
}

#pragma GCC visibility pop

#endif
