/* peak.h — takes the picture of the peak: the live bytes of each site near the moment when the process held most
 * memory.
 * In: the running total, whenever it is noted. Out: one of the ledger's two pictures (SNAP_PEAK_0, SNAP_PEAK_1). */
#ifndef MEMSTOW_PEAK_H
#define MEMSTOW_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Call it whenever the running total is noted. When the total has fallen clearly below a peak that has no picture yet,
 * peak_watch copies a bounded slice of the picture. If another thread is copying, peak_watch returns at once. */
void peak_watch(uint64_t total);
/* The total has fallen clearly if it lies below the peak by at least a hundredth of the peak and at least this many
 * bytes. */
enum { PEAK_FALL_LEAST = 1 << 20 };
/* Call it when a large block is about to be freed, and is still counted. If the free will make the total fall clearly,
 * a picture begins, unless another thread works on the pictures. The block counts in that picture, and in a picture
 * that is being made already. */
void peak_note_free(uint32_t site, uint64_t bytes);
/* Call it when a large block has just been allocated and counted, but is not in the total yet. A picture that is being
 * made leaves the block out. */
void peak_note_alloc(uint32_t site, uint64_t bytes);
/* Call it when a large block is about to be resized, which counts as a free and an allocation. It does the same as
 * peak_note_free, but begins no picture. */
void peak_note_resized(uint32_t site, uint64_t bytes);
/* At the end of the process: completes a copy that has begun. */
void peak_finish(void);

/* The state of a walk (peak_sites) through the pictures SNAP_PEAK_0 and SNAP_PEAK_1, all zero at the beginning. buffer:
 * the picture that is being read, 0 or 1; begun: how many pictures had been begun in that buffer when the walk began to
 * read it; at: the next byte to read; site: the site that was read most recently. */
struct peak_walk {
    uint32_t buffer, begun, at, site;
};
/* MORE: the walk goes on with the next call. ALL: the walk is done. BUSY: another thread works on the pictures, and
 * nothing was done. */
enum peak_listed { PEAK_MORE, PEAK_ALL, PEAK_BUSY };
/* Does a part of the walk. Calls `each` for every site in a complete picture, and in a picture that is being made. Some
 * sites come twice. Sites that are added meanwhile come, too. */
enum peak_listed peak_sites(void (*each)(uint32_t site), struct peak_walk *walk);

#pragma GCC visibility pop

#endif
