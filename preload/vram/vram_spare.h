/* vram_spare.h — freed blocks that are kept with their addresses and memory, for the next request of the same size.
 * In: freed blocks that nothing uses any more, requests. Out: a block for a request. Such a block has its physical
 * memory already, so the driver need not make any. A block is kept only if the calling thread is in a scope of the
 * block's owner, because memory that is freed within its owner's scope is temporary. The end of the scope gives the
 * spares back. */
#ifndef MEMSTOW_VRAM_SPARE_H
#define MEMSTOW_VRAM_SPARE_H

#include "preload/vram/vram_memory.h"

#pragma GCC visibility push(hidden)

/* The bytes that may be kept at most, on all devices. 0: none. */
extern uint64_t vram_spare_most;

/* True: no block is kept from now on. False: blocks may be kept again. */
void vram_spare_stop(bool stop);

/* Whether to keep a block that the caller has taken and that nothing uses any more. */
bool vram_spare_wants(const struct vram_block *self);
/* Takes the oldest spare, if all spares and `bytes` more would exceed vram_spare_most. NULL: they would not exceed it,
 * or other threads have taken all spares. */
struct vram_block *vram_spare_before(uint64_t bytes);
/* Takes a spare of this owner (0: of any owner). NULL: there is none. */
struct vram_block *vram_spare_of(uint32_t owner);
/* Takes a block whose memory may serve the request: a spare, or a freed block that only work on the request's stream
 * may still use. NULL: there is none. */
struct vram_block *vram_spare_for(const struct vram_request *request);

#pragma GCC visibility pop

#endif
