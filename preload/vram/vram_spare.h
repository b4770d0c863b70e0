/* vram_spare.h — freed blocks that are kept with their addresses and memory, for the next request of the same size.
 * In: freed blocks that nothing uses any more, requests. Out: a block for a request, without any call of the driver
 * about physical memory. A block is kept only while the thread is in the scope of the block's owner: what is freed
 * there is temporary, and the end of the scope gives the spares back. */
#ifndef MEMSTOW_VRAM_SPARE_H
#define MEMSTOW_VRAM_SPARE_H

#include "preload/vram/vram_memory.h"

#pragma GCC visibility push(hidden)

/* The bytes that may be kept at most, on all devices. 0: none. */
extern uint64_t vram_spare_most;

/* Nothing is kept from now on, or something may be again. */
void vram_spare_stop(bool stop);

/* Whether to keep the block, which the caller has. Nothing uses it any more. */
bool vram_spare_wants(const struct vram_block *self);
/* If spares with `bytes` more would exceed their limit, takes the oldest spare. NULL: they would not. */
struct vram_block *vram_spare_before(uint64_t bytes);
/* Takes a spare of this owner (0: of any). NULL: there is none. */
struct vram_block *vram_spare_of(uint32_t owner);
/* Takes a block whose memory may serve the request: a spare, or a freed block that only work on the request's stream
 * may still use. NULL: there is none. */
struct vram_block *vram_spare_for(const struct vram_request *request);

#pragma GCC visibility pop

#endif
