/* vram_block.h — a block of device memory that memstow serves (makes in place of the driver): a range of addresses, and
 * pieces of physical memory mapped in it.
 * In: a size, a device, the devices with access. Out: memory at its addresses, or addresses without memory. Each step
 * notes in the block what exists, so a call that is repeated after a failure continues where the failed call stopped.
 * One thread at a time may work on a block. */
#ifndef MEMSTOW_VRAM_BLOCK_H
#define MEMSTOW_VRAM_BLOCK_H

#include "preload/copies/vram_hash.h"

#pragma GCC visibility push(hidden)

enum {
    VRAM_PIECES = 64,
    VRAM_DEVICES = 64,
};
/* The size of a piece in bytes. A block that would have more than VRAM_PIECES pieces of this size has larger pieces.
 * One call of the driver makes a piece, and another call maps it. */
#define VRAM_PIECE ((uint64_t)256 << 20)

enum vram_state {
    VRAM_LIVE,
    VRAM_STOWED, /* its content is in `backup`, or was discarded */
    /* The program has freed the block. It ends:
     * - without a wait, if `no_context` is set
     * - after its `event`, if it has one and `copied` is not set
     * - otherwise when nothing runs in its context */
    VRAM_FREEING,
    VRAM_WRECK, /* it is being ended, or the driver did not take back all of it */
    VRAM_SPARE, /* freed, and kept with its memory for the next request of its size (vram_spare.h) */
};

/* Where `backup` is. VRAM_DISCARDED: the content was discarded, and there is no backup. */
enum vram_backup_kind { VRAM_IN_MEMORY, VRAM_PINNED, VRAM_IN_FILE, VRAM_BACKUP_KINDS, VRAM_DISCARDED };

struct vram_block {
    struct vram_block *next, *before, *in_move;   /* next, before: in the table's list; in_move: in a move's list */
    struct vram_block *lower, *higher;            /* in the table's tree: blocks at lower and at higher addresses */
    struct vram_block *freed_next, *freed_before; /* in the queue of freed blocks and wrecks, or of spares */
    struct vram_block *shelf_next, *shelf_before; /* on the table's shelf for the block's size */
    uint64_t at, size, asked; /* at: the address; asked: bytes as requested; size: `asked` in whole VRAM_GRANULEs */
    uint64_t rank;            /* in the tree, a block has a higher rank than the blocks below it */
    bool in_tree;
    uint64_t piece;   /* bytes of each piece; the last piece may have fewer */
    uint64_t devices; /* a bit for each device that may use the block, including the block's own */
    uint32_t device, owner;
    bool in_stream;      /* requested from a pool (cuMemAllocAsync): memstow serves it in place of the pool */
    cuda_handle context; /* the context of the request */
    enum vram_state state;
    bool moving;     /* a thread has taken the block (vram_table.h) */
    uint8_t refused; /* enum vram_refusal: why the block never moves; VRAM_REFUSAL_DONE: it can move */
    bool mixed;      /* other owners have parts of it */
    bool copied;     /* a copy to or from the block may go on: the driver has not reported its end */
    bool no_context; /* `event_context` has ended, and the event with it */
    uint32_t tried;  /* number of the latest move that looked at the block */
    /* searched: the number of the latest search for freed blocks that looked at this block. reached: the number of the
     * latest vram_memory_reach that tried this block */
    uint64_t searched, reached;
    uint32_t pieces, made, mapped; /* how many pieces there are; how many have physical memory; how many are mapped */
    bool open;                     /* `devices` have access now */
    bool rdma;                     /* the memory was made so that network cards can use it */
    uint64_t id;                   /* the id of its memory in answers to the program (BUFFER_ID) */
    uint64_t left_ns, trigger;     /* when the block last left its device, and by which trigger (0: by none) */
    uint64_t number;               /* set at the request: higher than all earlier numbers (vram_table_number) */
    char *backup;
    enum vram_backup_kind backup_kind;
    /* standby: the block is live, and `backup` still has the content that came back. hashed: `hash` is of the content
     * that was copied to `backup`. unchanged: the block still has this content. */
    bool standby, hashed, unchanged;
    struct vram_hash_value hash;
    cuda_handle event, event_context; /* event: recorded when the block was freed; event_context: the event's context */
    const void *event_stream;         /* the stream of `event`, only for comparing: the stream may be gone */
    uint64_t event_number;            /* set when `event` was recorded: a number of the same series as `number` */
    cuda_memory memory[VRAM_PIECES];
};

/* --- steps that make, change and end a block. Functions of type int return 0 or the driver's error --- */

/* Sets the sizes of the block and of its pieces, for a request of `bytes`. */
void vram_block_plan(struct vram_block *self, uint64_t bytes);
/* Reserves the addresses. */
int vram_block_reserve(const struct vram_driver *driver, struct vram_block *self);
/* Sets the devices that may use the block. If the block is mapped, access changes at once, otherwise when the block is
 * mapped. On failure nothing has changed. */
int vram_block_open(const struct vram_driver *driver, struct vram_block *self, uint64_t devices);
/* Makes all physical memory of the block. On failure, the block keeps as little memory as the driver allows. */
int vram_block_make(const struct vram_driver *driver, struct vram_block *self);
/* Makes the physical memory that the block lacks, maps it and grants access. On failure, the block keeps as little
 * memory as the driver allows. */
int vram_block_fill(const struct vram_driver *driver, struct vram_block *self);
/* Frees the physical memory, and keeps the addresses. False: the driver did not release all of it. */
bool vram_block_strip(const struct vram_driver *driver, struct vram_block *self);
/* Frees the physical memory and the addresses. False: the driver did not release all of it. */
bool vram_block_end(const struct vram_driver *driver, struct vram_block *self);

static inline uint64_t vram_block_piece_bytes(const struct vram_block *self, uint32_t i) {
    return i + 1 < self->pieces ? self->piece : self->size - (uint64_t)i * self->piece;
}

#pragma GCC visibility pop

#endif
