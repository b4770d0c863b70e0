/* heaps.h — memory of an owner's own, so that it can go back to the system when the owner is gone. In: a thread's
 * allocations in the scope of a model or custom. Out: small blocks from that owner's mimalloc heap, large ones as
 * mappings of their own. The allocator that was there (next.h) serves everything else. When the first such owner is
 * entered, this one is put in front of it, and frees are told apart by address. Without mimalloc built in there are
 * only the mappings.
 *
 * Any thread frees. When the last block of a retired owner's heap is freed, the heap goes back as a whole, at once. */
#ifndef MEMSTOW_HEAPS_H
#define MEMSTOW_HEAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { HEAPS_MAPPED = 256 * 1024 }; /* blocks of as much are mappings of their own */

/* Whether a raw block is of such a heap. */
bool heaps_have(const void *raw);
/* The owner is gone. The blocks that are left in its heap are freed, if at all, by the program. The free memory of the
 * heap goes back, if this thread made it. */
void heaps_retire(uint32_t owner);
/* Gives back what the heap has free; mimalloc does not say how much that was. */
void heaps_collect(uint32_t owner);
/* Gives back the free memory of heaps that this thread made and whose owners are retired, although some of their blocks
 * live on. The making of a heap calls it; call it also at the end of a trigger. */
void heaps_tidy(void);

/* Puts itself in front of `next`, the first time. One thread at a time. */
void heaps_begin(void);

#pragma GCC visibility pop

#endif
