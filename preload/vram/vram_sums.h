/* vram_sums.h — how much device memory memstow serves, by device (at once) and owner (by a walk).
 * In: the table of blocks. Out: sums, and peaks since they were reset. Any thread. */
#ifndef MEMSTOW_VRAM_SUMS_H
#define MEMSTOW_VRAM_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The sums of an owner (0: of all), or of a device (UINT32_MAX: of all). */
struct vram_sums {
    uint64_t live, stowed;                        /* bytes, in whole granules */
    uint64_t asked, stowed_asked;                 /* requested bytes: of live and stowed blocks; of stowed blocks */
    uint64_t in_streams;                          /* requested in place of a pool, live or stowed */
    uint64_t streams_taken;                       /* in_streams in whole granules */
    uint64_t in_streams_most, streams_taken_most; /* peaks of the device over all owners, since they were reset */
    uint64_t spare;                               /* bytes of freed blocks that are kept; no other sum has them */
    uint64_t backup;                              /* bytes on the host that hold the content, for all owners */
    uint32_t blocks, wrecks;
};
struct vram_sums vram_sums(uint32_t owner, uint32_t device);
/* Served memory was added: raises the device's peaks. */
void vram_sums_note_most(uint32_t device);
/* Resets a peak: of the bytes in whole granules (`taken`), or of the requested bytes. */
void vram_sums_forget_most(uint32_t device, bool taken);

#pragma GCC visibility pop

#endif
