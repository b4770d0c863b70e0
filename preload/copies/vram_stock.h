/* vram_stock.h — pinned memory of the host that stays pinned. Moves use it again and again, because pinning is slow.
 * In: sizes in whole granules, limits. Out: ranges of pinned memory. Only the thread that moves memory takes ranges and
 * shrinks the stock. While no move goes on, another thread may pin ahead of need. Any thread may give ranges back.
 * A forked child has none of this memory. The ledger lists the stock as a buffer. */
#ifndef MEMSTOW_VRAM_STOCK_H
#define MEMSTOW_VRAM_STOCK_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

struct vram_stock_wish {
    uint64_t bytes;      /* the size of the range to take */
    uint64_t expected;   /* the bytes that the whole move will take: a new piece may be made large enough for them */
    uint64_t most;       /* the limit of the whole stock, in bytes */
    uint64_t most_new;   /* how many bytes may be pinned in addition, now */
    cuda_handle context; /* the current context, in which new memory is pinned */
    uint32_t device;
};
/* Takes a range of the stock, and pins those of its bytes that are not pinned yet. NULL: there is no memory, or the
 * driver refuses. */
char *vram_stock_take(const struct vram_driver *driver, const struct vram_stock_wish *wish);
/* Pins one piece ahead of need. If the context of an existing piece has ended, that piece is pinned again. Otherwise
 * a new piece of wish->bytes is made, but of 256 MiB at most. Returns false if nothing was pinned. After pinning has
 * failed, or after vram_stock_shrink has given memory back, this function pins nothing until vram_stock_take has
 * pinned new memory. */
bool vram_stock_ahead(const struct vram_driver *driver, const struct vram_stock_wish *wish);
/* Gives a range back to the stock. It stays pinned. */
void vram_stock_give(const char *at, uint64_t bytes);
/* How many of the `bytes` from `at` on were pinned by one and the same call. The driver copies no more than that at
 * once. */
uint64_t vram_stock_whole(const char *at, uint64_t bytes);

/* Unpins all pieces of which no part is in use, and gives them back to the system. A piece that the driver does not
 * unpin stays. */
void vram_stock_shrink(const struct vram_driver *driver);
/* Call it when the context has ended: its pieces are not pinned any more, and keep their content. A piece is pinned
 * again when a move takes it, or ahead of need (vram_stock_ahead). */
void vram_stock_forget(cuda_handle context);
/* Whether memory that was pinned in this context is taken (vram_stock_take). */
bool vram_stock_serves(cuda_handle context);
/* The size of the whole stock in bytes, in use or not. */
uint64_t vram_stock_bytes(void);

#pragma GCC visibility pop

#endif
