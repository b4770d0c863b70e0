/* peak.h — a picture of the ledger when the process held most. In: the running total, at each note of it. Out: one of
 * the ledger's two pictures (SNAP_PEAK_0, SNAP_PEAK_1). */
#ifndef MEMSTOW_PEAK_H
#define MEMSTOW_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Copies a bounded slice once the total has fallen clearly below a peak that has no picture yet. A thread that comes
 * while another copies goes on its way. */
void peak_watch(uint64_t total);
/* A block that alone makes the total fall clearly is about to be freed, and not yet counted as freed. The picture that
 * is to be taken, or is being taken, shows it all the same. */
enum { PEAK_FALL_LEAST = 1 << 20 };
void peak_note_free(uint32_t site, uint64_t bytes);
/* One has come, and is counted, but not yet noted in the total. A picture in the making leaves it out. */
void peak_note_alloc(uint32_t site, uint64_t bytes);
/* One is about to be resized, which counts as gone and come again. No picture is begun for that. */
void peak_note_resized(uint32_t site, uint64_t bytes);
/* Completes a copy that has begun: at the end of the process. */
void peak_finish(void);

/* Calls back for each site that is in a picture, also in the one in the making, a little at a time; some come twice.
 * Sites that are added meanwhile come, too. True when done. */
struct peak_walk {
    uint32_t buffer, begun, at, site;
};
enum peak_listed { PEAK_MORE, PEAK_ALL, PEAK_BUSY /* one is being made just now */ };
enum peak_listed peak_sites(void (*each)(uint32_t site), struct peak_walk *walk);

#pragma GCC visibility pop

#endif
