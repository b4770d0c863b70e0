/* peak.h — a picture of the ledger at the moment when the process held most.
 * In: the running total, whenever it is noted. Out: one of the ledger's two pictures (SNAP_PEAK_0, SNAP_PEAK_1). */
#ifndef MEMSTOW_PEAK_H
#define MEMSTOW_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Copies a bounded slice when the total has fallen clearly below a peak without a picture. If another thread copies, it
 * returns at once. */
void peak_watch(uint64_t total);
/* A clear fall of the total: a hundredth of the peak, and at least so many bytes. */
enum { PEAK_FALL_LEAST = 1 << 20 };
/* A large block is about to be freed and is still counted: its end alone makes the total fall clearly. A picture that
 * is begun or in the making contains it all the same. */
void peak_note_free(uint32_t site, uint64_t bytes);
/* A large block has come and is counted, but is not in the total yet. A picture in the making leaves it out. */
void peak_note_alloc(uint32_t site, uint64_t bytes);
/* A large block is about to be resized, which counts as a free and an allocation. No picture is begun for that. */
void peak_note_resized(uint32_t site, uint64_t bytes);
/* At the end of the process: completes a copy that has begun. */
void peak_finish(void);

/* A walk through both pictures. All zero at the beginning. */
struct peak_walk {
    uint32_t buffer, begun, at, site;
};
/* ALL: the walk is done. BUSY: another thread works on the pictures, and nothing was done. */
enum peak_listed { PEAK_MORE, PEAK_ALL, PEAK_BUSY };
/* Calls `each` for every site in a picture, also in the one in the making. It does a little at each call; some sites
 * come twice. Sites that are added meanwhile come, too. */
enum peak_listed peak_sites(void (*each)(uint32_t site), struct peak_walk *walk);

#pragma GCC visibility pop

#endif
