/* vram_sums.h — how much device memory memstow serves (makes in place of the driver). The sums of a device are kept up
 * to date; those of an owner are added up in a walk through all blocks.
 * In: the table of blocks. Out: sums, and peaks since they were reset. Any thread may call. */
#ifndef MEMSTOW_VRAM_SUMS_H
#define MEMSTOW_VRAM_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Sums over the blocks of an owner (0: of all owners) on a device (UINT32_MAX: on all devices). */
struct vram_sums {
    uint64_t live, stowed;        /* bytes, in whole granules (VRAM_GRANULE) */
    uint64_t asked, stowed_asked; /* bytes as requested: of live and stowed blocks, and of stowed blocks alone */
    uint64_t in_streams;          /* as `asked`, but only of blocks that are served in place of a pool */
    uint64_t streams_taken;       /* the bytes of these blocks in whole granules */
    /* peaks of the device over all owners, since these peaks were reset; 0 if the sums are of all devices */
    uint64_t in_streams_most, streams_taken_most;
    uint64_t spare;  /* bytes of freed blocks that are kept; no other sum has them */
    uint64_t backup; /* bytes of backups on the host, of all owners and devices */
    uint32_t blocks, wrecks;
};
struct vram_sums vram_sums(uint32_t owner, uint32_t device);
/* Raises the device's peaks to the present sums, if these are higher. Call it when served memory was added. */
void vram_sums_note_most(uint32_t device);
/* Sets a peak back to the present value: streams_taken_most if `taken`, otherwise in_streams_most. */
void vram_sums_forget_most(uint32_t device, bool taken);

#pragma GCC visibility pop

#endif
