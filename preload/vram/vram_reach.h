/* vram_reach.h — which devices may use the memory that is served on another device.
 * In: the devices that exist, the devices on which the program works, and the program's settings of default pools. Out:
 * a bit for each device with access to mapped memory. Any thread may call.
 *
 * Every device can copy memory of cudaMalloc, without further calls. Mapped memory can be copied only by a device with
 * access. So every device on which the program works gets access, and a block that one of them could not access is not
 * served. For memory that is served in place of a pool, the program's settings of that pool decide
 * (cuMemPoolSetAccess). */
#ifndef MEMSTOW_VRAM_REACH_H
#define MEMSTOW_VRAM_REACH_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Asks the driver which devices can access each other. What vram_reach_works_on and vram_reach_pool noted before is
 * kept. `find` finds a function of the driver by name. False: the driver does not tell. */
bool vram_reach_begin(void *(*find)(const char *name));

/* Notes that the program works on a device. True: that was not known before. */
bool vram_reach_works_on(uint32_t device);
/* Notes that the device `by` may use the memory of a device's default pool, or that it no longer may. */
void vram_reach_pool(uint32_t device, uint32_t by, bool may);

/* The devices that may use memory served on this device, as bits. The device itself is one of them. `in_stream`: the
 * memory is served in place of a pool. */
uint64_t vram_reach_of(uint32_t device, bool in_stream);
/* Whether every other device can access memory of this device. */
bool vram_reach_is_whole(uint32_t device);

#pragma GCC visibility pop

#endif
