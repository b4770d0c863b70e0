/* perfetto.h — writes tracks and events of a trace for Perfetto.
 * In: tracks, and what happens on them. Out: packets on standard output, each by itself: a trace is a repeated field,
 * so no more than one is in memory. Names are made safe. */
#ifndef MEMSTOW_PERFETTO_H
#define MEMSTOW_PERFETTO_H

#include <stdbool.h>
#include <stdint.h>

struct perfetto {
    uint64_t first_ns, last_ns; /* earlier and later times are replaced by these */
    bool failed;                /* no memory */
};

/* The track of the process has this number; it is the parent of tracks that name no other parent. */
enum { PERFETTO_PROCESS = 1 };
void perfetto_process(struct perfetto *perfetto, uint32_t pid, const char *name);
void perfetto_track(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name);
/* A counter of bytes. */
void perfetto_counter(struct perfetto *perfetto, uint64_t track, uint64_t parent, const char *name);

/* The counter's value from this time on. */
void perfetto_count(struct perfetto *perfetto, uint64_t track, uint64_t ns, uint64_t bytes);
/* Notes beside a slice or instant: each is a text, or a number if the text is NULL. */
enum { PERFETTO_NOTES = 6 };
struct perfetto_note {
    const char *name, *text;
    uint64_t number;
};
/* Slices of a track must not overlap; end them in the order of their beginning. */
void perfetto_begin(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                    const struct perfetto_note *notes, int count);
void perfetto_end(struct perfetto *perfetto, uint64_t track, uint64_t ns);
void perfetto_instant(struct perfetto *perfetto, uint64_t track, uint64_t ns, const char *name,
                      const struct perfetto_note *notes, int count);

#endif
