/* vram_reach.h — which devices may use the memory that is served on another one.
 * In: what devices there are, on which the program works, and what it has said of their default pools. Out: a bit for
 * each device that has access wherever memory is mapped. Any thread; nothing here waits.
 *
 * Memory of cudaMalloc can be copied from any device, asked for or not; mapped memory only from one that has access. So
 * it has access from every device that the program works on, and is not served where one of them could not have it.
 * Memory of a pool has what cuMemPoolSetAccess has said. */
#ifndef MEMSTOW_VRAM_REACH_H
#define MEMSTOW_VRAM_REACH_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Asks the driver which devices can reach each other; what is known of the program stays. False: it does not say. */
bool vram_reach_begin(void *(*find)(const char *name));

/* The program works on a device. True: that is new. */
bool vram_reach_works_on(uint32_t device);
/* The memory of a device's default pool may be used by another one, or no more. */
void vram_reach_pool(uint32_t device, uint32_t by, bool may);

/* Those that have access to memory on a device, itself among them. */
uint64_t vram_reach_of(uint32_t device, bool in_stream);
/* Every other device can have access to its memory. */
bool vram_reach_is_whole(uint32_t device);

#pragma GCC visibility pop

#endif
