/* perfetto.h — writes tracks and events of a trace for Perfetto.
 * In: tracks, and the events on them. Out: packets on standard output. A trace is a repeated field of packets, so each
 * packet can be written by itself, and only one is in memory. Unprintable characters of names are replaced. */
#ifndef MEMSTOW_PERFETTO_H
#define MEMSTOW_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>

struct perfetto {
    uint64_t first_ns, last_ns; /* an earlier event gets the time first_ns, and a later event last_ns */
    bool failed;                /* no memory */
};

/* The number of the process's track, for use as the parent of other tracks. */
enum { PERFETTO_PROCESS = 1 };
void perfetto_process(struct perfetto *perfetto, uint32_t pid, const char *name);
void perfetto_track(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name);
/* Makes a track that is a counter of bytes. */
void perfetto_counter(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name);

/* Sets the counter's value from the time `ns` on. */
void perfetto_count(struct perfetto *perfetto, uint64_t track, uint64_t ns, uint64_t bytes);
/* A note beside a slice or instant: a text, or a number if the text is NULL. PERFETTO_NOTES: the most notes of one
 * slice or instant. */
enum { PERFETTO_NOTES = 6 };
struct perfetto_note {
    const char *name, *text;
    uint64_t number;
};
/* Begins a slice, an event that lasts. The slices of a track must not overlap: end one before you begin the next. */
void perfetto_begin(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                    const struct perfetto_note *notes, int count);
void perfetto_end(struct perfetto *perfetto, uint64_t track, uint64_t ns);
/* Writes an instant, an event without a length. */
void perfetto_instant(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                      const struct perfetto_note *notes, int count);

#endif
