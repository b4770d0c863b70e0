/* vram_block.h — one block of device memory that memstow serves: a range of addresses, and pieces of physical memory
 * mapped in it. In: a size, a device, the devices with access. Out: memory at its addresses, or addresses without
 * memory. Each step counts what is there, so that after any failure the same call goes on where the last one stopped.
 * One thread at a time. */
#ifndef MEMSTOW_VRAM_BLOCK_H
#define MEMSTOW_VRAM_BLOCK_H

#include "preload/vram/vram_driver.h"

#pragma GCC visibility push(hidden)

enum {
    VRAM_PIECES = 64,
    VRAM_DEVICES = 64,
};
#define VRAM_GRANULE ((uint64_t)2 << 20)
#define VRAM_PIECE ((uint64_t)64 << 20) /* larger only where there would be more than VRAM_PIECES */

enum vram_state {
    VRAM_LIVE,
    VRAM_STOWED,  /* its content is in `backup` */
    VRAM_FREEING, /* until `event` has come; without one, until nothing runs in its context */
    VRAM_WRECK,   /* nobody's any more; what the driver would not take back yet */
};

/* Where `backup` is. */
enum vram_kept { VRAM_IN_MEMORY, VRAM_PINNED, VRAM_IN_FILE, VRAM_KEPT_KINDS };

struct vram_block {
    struct vram_block *next, *in_bucket, *in_move;
    uint64_t at, size, asked; /* size: of whole granules */
    uint64_t start;           /* `at`, as the table has it */
    uint64_t piece;           /* bytes of each piece but the last */
    uint64_t devices;         /* a bit for each that may use it, its own among them */
    uint32_t device, owner;
    bool in_stream;      /* asked for in place of a pool */
    cuda_handle context; /* in which it was asked for */
    enum vram_state state;
    bool moving;
    uint8_t refused;            /* why something outside knows where its memory is: enum stow_cuda_refusal; 0: none */
    bool mixed;                 /* parts of it are other owners' */
    bool no_context;            /* that in which it was freed has ended */
    uint32_t tried;             /* the move that has looked at it */
    uint64_t searched, reached; /* the same of searches for what is freed, and for whose access has changed */
    uint32_t pieces, made, mapped; /* of the pieces: all, those with physical memory, those at their address */
    bool open;                     /* and its devices may use them */
    bool rdma;                     /* made so that network cards can have it */
    uint64_t id;                   /* what it is known by to who asks the driver */
    uint64_t number;               /* higher than those of all that were served before it */
    char *backup;
    enum vram_kept kept;
    cuda_handle event, event_context; /* where it was recorded */
    uint64_t event_number;            /* as `number`: of when it was */
    cuda_memory memory[VRAM_PIECES];
};

/* Fills in pieces and size. */
void vram_block_plan(struct vram_block *self, uint64_t bytes);
/* Addresses. */
int vram_block_reserve(const struct vram_driver *driver, struct vram_block *self);
/* So many devices may use it: at once where it is mapped, else from then on. On failure it is as it was. */
int vram_block_open(const struct vram_driver *driver, struct vram_block *self, uint64_t devices);
/* Physical memory for all of it, mapped, usable. After a failure there is as little as the driver lets go. */
int vram_block_fill(const struct vram_driver *driver, struct vram_block *self);
/* No physical memory. False: the driver would not let go of all. */
bool vram_block_strip(const struct vram_driver *driver, struct vram_block *self);
/* The same, and no addresses. */
bool vram_block_end(const struct vram_driver *driver, struct vram_block *self);

static inline uint64_t vram_block_piece_bytes(const struct vram_block *self, uint32_t i) {
    return i + 1 < self->pieces ? self->piece : self->size - (uint64_t)i * self->piece;
}

#pragma GCC visibility pop

#endif
