/* vram_end.h — how blocks that memstow serves (vram_block.h) end: at once, or when the work that may use them is done.
 * In: blocks that the caller has taken (vram_table.h). Out: their addresses and memory go back to the driver, or are
 * kept for the next request. Any thread may call, even while streams are in capture: nothing here breaks a capture. */
#ifndef MEMSTOW_VRAM_END_H
#define MEMSTOW_VRAM_END_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

/* Lets go of a block that the caller has taken, so that others can take it (vram_table.h). Sets its state. */
void vram_end_give_back(struct vram_block *self, enum vram_state state);
/* Ends the block now. False: the driver did not take back all of it, and the block is a wreck (VRAM_WRECK). */
bool vram_end_now(const struct vram_driver *driver, struct vram_block *self);
/* Call it when nothing uses a freed block any more. It keeps the block for the next request (vram_spare.h), or ends it
 * now. False: the block became a wreck. */
bool vram_end_freed(const struct vram_driver *driver, struct vram_block *self);
/* Ends the spares of an owner (0: of all owners). Returns how many ended. */
uint32_t vram_end_spares(const struct vram_driver *driver, uint32_t owner);
/* Makes a stream wait for the work that may still use a freed block. After that, new work on the stream may use the
 * block. False: the stream cannot wait. */
bool vram_end_order(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream);
/* The value by which the member `event_stream` of a block identifies this stream. */
const void *vram_end_stream(cuda_handle stream);
/* Marks the block as freed: it ends when the present work on the stream is done. Returns 0, or the driver's error:
 * then the block is not marked. */
int vram_end_in(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream);
/* Marks the block as freed: it ends when nothing runs in its context. */
void vram_end_later(struct vram_block *self);

/* Ends freed blocks whose work is done, or keeps them as spares, and tries again to end wrecks. memstow has no thread
 * for this: threads of the program call it in passing. Returns how many blocks ended or were kept. */
uint32_t vram_end_ripe(const struct vram_driver *driver);
/* As vram_end_ripe, for a caller that must not take long: it stops after a few blocks that are still in use. The next
 * call tries other blocks. */
void vram_end_some(const struct vram_driver *driver);
/* Waits until a freed block or a spare has ended, for this time at most. False: none has ended. */
bool vram_end_wait(const struct vram_driver *driver, uint32_t milliseconds);

/* Call it when this context has ended. Forgets the context's events with numbers below `number`, because these ended
 * with the context. The caller holds the lock of the table. */
void vram_end_context(cuda_handle context, uint64_t number);

#pragma GCC visibility pop

#endif
