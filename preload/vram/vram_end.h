/* vram_end.h — how served blocks end: at once, or when the work that may use them is done.
 * In: blocks that the caller has. Out: addresses and memory, back to the driver. Any thread, even while streams are in
 * capture: nothing here breaks a capture. */
#ifndef MEMSTOW_VRAM_END_H
#define MEMSTOW_VRAM_END_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

/* Gives a block back that the caller has, with this state. */
void vram_end_give_back(struct vram_block *self, enum vram_state state);
/* Ends the block now. False: memory that the driver does not take back became a wreck. */
bool vram_end_now(const struct vram_driver *driver, struct vram_block *self);
/* A freed block that nothing uses any more: keeps it for the next request (vram_spare.h), or ends it now. False: as
 * vram_end_now. */
bool vram_end_freed(const struct vram_driver *driver, struct vram_block *self);
/* Ends the spares of an owner (0: of all). Returns how many ended. */
uint32_t vram_end_spares(const struct vram_driver *driver, uint32_t owner);
/* Has a stream wait for what may still use a freed block, so that the next work on the stream may use it. False: it
 * cannot. */
bool vram_end_order(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream);
/* Stands for a stream in a block's event_stream. */
const void *vram_end_stream(cuda_handle stream);
/* Ends it when the present work on the stream is done. On the driver's error nothing has changed. */
int vram_end_in(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream);
/* Ends it when nothing runs in its context. */
void vram_end_later(struct vram_block *self);

/* Ends freed blocks whose work is done, or keeps them, and tries wrecks again. Any passing thread calls it. Returns how
 * many ended or were kept. */
uint32_t vram_end_ripe(const struct vram_driver *driver);
/* The same for a caller that must not wait: it stops after a few that are still in use. The next call tries others. */
void vram_end_some(const struct vram_driver *driver);
/* Waits, for that time at most, until a freed block or a spare has ended. False: none has. */
bool vram_end_wait(const struct vram_driver *driver, uint32_t milliseconds);

/* With the lock of the table: events of this context that were recorded before this number have ended with the
 * context. */
void vram_end_context(cuda_handle context, uint64_t number);

#pragma GCC visibility pop

#endif
