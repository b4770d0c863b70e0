/* vram_pointer.h — what the driver would say of an address if its memory were not served by pieces, or were not out.
 * In: an address. Out: attributes as memory of cudaMalloc or of a pool has them. Any thread. */
#ifndef MEMSTOW_VRAM_POINTER_H
#define MEMSTOW_VRAM_POINTER_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The block that an address lies in, as it was asked for; false: it is none of ours. */
bool vram_pointer_range(uint64_t address, uint64_t *start, uint64_t *bytes);
/* Writes one attribute (CUpointer_attribute). False: the driver's answer holds, or there is none. */
bool vram_pointer_attribute(void *out, int which, uint64_t address);

#pragma GCC visibility pop

#endif
