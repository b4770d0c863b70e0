/* vram_end.h — how served blocks end: at once, or when what may use them has been executed.
 * In: blocks that are the caller's. Out: addresses and memory that the driver has back. Any thread, also while streams
 * are captured: nothing here breaks a capture. */
#ifndef MEMSTOW_VRAM_END_H
#define MEMSTOW_VRAM_END_H

#include "preload/vram/vram_block.h"

#pragma GCC visibility push(hidden)

/* The block is nobody's any more, in this state. */
void vram_end_give_back(struct vram_block *self, enum vram_state state);
/* It is gone. What the driver would not take back stays as a wreck. */
void vram_end_now(const struct vram_driver *driver, struct vram_block *self);
/* When all that is on the stream now has been executed. The driver's error: it is as it was. */
int vram_end_in(const struct vram_driver *driver, struct vram_block *self, cuda_handle stream);
/* When nothing runs in its context. */
void vram_end_later(struct vram_block *self);

/* Ends blocks that are freed and whose work has been executed, and tries wrecks again; any thread that comes by calls
 * it. Returns how many ended. */
uint32_t vram_end_ripe(const struct vram_driver *driver);
/* Waits, for so long, until something that is freed has been executed. False: nothing has ended. */
bool vram_end_wait(const struct vram_driver *driver, uint32_t milliseconds);

/* With the lock of the table: events of this context that were recorded before this number of the table's are gone
 * with it. */
void vram_end_context(cuda_handle context, uint64_t number);

#pragma GCC visibility pop

#endif
