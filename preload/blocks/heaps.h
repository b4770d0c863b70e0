/* heaps.h — memory that belongs to one owner alone, so that it can go back to the system when the owner is gone.
 * In: allocations of a thread in the scope of a model or custom. Out: small blocks from the owner's mimalloc heap,
 * large blocks as mappings of their own. The allocator that was there before (next.h) serves all other allocations.
 * When the first such owner is opened, heaps_begin puts the heaps in front of that allocator. The address of a block
 * tells which allocator must free it. Without mimalloc in the build, there are only the mappings.
 *
 * Any thread may free. When the last block of a retired owner's heap is freed, the whole heap goes back at once. */
#ifndef MEMSTOW_HEAPS_H
#define MEMSTOW_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { HEAPS_MAPPED = 256 * 1024 }; /* blocks of this size or more are mappings of their own */

/* Whether a raw block is from an owner's heap. */
bool heaps_have(const void *raw);
/* Call it when the owner is gone (retired). Blocks that are left in its heap wait for the program's free. The free
 * memory of the heap goes back to the system, if the calling thread made the heap. */
void heaps_retire(uint32_t owner);
/* Gives the free memory of the owner's heap back to the system. mimalloc does not say how much it gave back. */
void heaps_collect(uint32_t owner);
/* For retired owners with live blocks: gives back the free memory of their heaps, if the calling thread made them. It
 * runs whenever a heap is made, and at the end of each trigger (trigger.h). */
void heaps_tidy(void);

/* Puts the heaps in front of `next`, on the first call. Only one thread at a time may call it. */
void heaps_begin(void);

#pragma GCC visibility pop

#endif
