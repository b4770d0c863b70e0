/* vram_stock.h — pinned memory of the host that stays pinned. Moves use it again and again, because pinning is slow.
 * In: sizes in whole granules, limits. Out: ranges of pinned memory. The mover alone takes and shrinks; any thread
 * gives. A forked child has nothing of it. The ledger lists it as a buffer. */
#ifndef MEMSTOW_VRAM_STOCK_H
#define MEMSTOW_VRAM_STOCK_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

struct vram_stock_wish {
    uint64_t bytes;      /* of this range */
    uint64_t expected;   /* what the move is going to take in all: a new piece is that large, if it may be */
    uint64_t most;       /* how much may be pinned, with what is pinned already */
    uint64_t most_new;   /* how much the host can spare for it now */
    cuda_handle context; /* the current one: in it, new memory is pinned */
    uint32_t device;
};
/* Takes a range, and pins what is missing. NULL: there is no memory, or the driver refuses. */
char *vram_stock_take(const struct vram_driver *driver, const struct vram_stock_wish *wish);
/* The range is unused from now on. It stays pinned. */
void vram_stock_give(const char *at, uint64_t bytes);
/* How many of these bytes were pinned in one call. The driver copies no further at once. */
uint64_t vram_stock_whole(const char *at, uint64_t bytes);

/* Unpins all pieces that nothing is in, and gives them back to the system. A piece that the driver does not unpin
 * stays. */
void vram_stock_shrink(const struct vram_driver *driver);
/* The context has ended, and with it the pinning. The content stays, and is pinned again when it is taken again. */
void vram_stock_forget(cuda_handle context);
/* All of it, in use or not. */
uint64_t vram_stock_bytes(void);

#pragma GCC visibility pop

#endif
