/* series.h — records of one type, numbered from 0. They lie in sections of the ledger, each larger than the one before.
 * In: a request for a new record. Out: an id that stays valid, and a record that never moves. A request waits for a
 * lock no longer than lock_wait does. A look-up takes no lock. */
#ifndef MEMSTOW_SERIES_H
#define MEMSTOW_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { SERIES_SEGMENTS = 24 };
struct series {
    uint32_t type;
    uint32_t record_size;
    uint32_t first_bits; /* binary logarithm of the first section's capacity */
    uint32_t limit;      /* ids from this one on are refused */
    /* True: the first record of each section holds the section's own address, and is no record of the type. */
    bool anchored;
    uint64_t next;                   /* the next new id */
    char *segments[SERIES_SEGMENTS]; /* the first record of each section; NULL: not made yet */
    struct snap_section *sections[SERIES_SEGMENTS];
};
enum { SERIES_NONE = UINT32_MAX };

/* Returns a new id. Returns SERIES_NONE if there is no memory, if `limit` is reached, or if the ledger is not ours
 * (ledger_is_ours). */
uint32_t series_take(struct series *self);
/* Takes `count` new ids whose records are adjacent in memory. Returns the first of these ids, or SERIES_NONE for the
 * reasons that series_take has. */
uint32_t series_take_run(struct series *self, uint32_t count);

/* Where a record lies. Segment 0 holds 2^first_bits records, and segment k holds 2^k times as many. The `position` of a
 * record is its id plus 2^first_bits. So the positions in segment k begin at 2^(first_bits + k). The highest bit of a
 * position gives the segment, and the bits below it give the record in the segment. */
struct series_slot {
    uint32_t segment, record;
};
static inline struct series_slot series_slot(const struct series *self, uint32_t id) {
    uint64_t position = (uint64_t)id + (1u << self->first_bits);
    uint32_t highest = 63u - (uint32_t)__builtin_clzll(position);
    return (struct series_slot){highest - self->first_bits, (uint32_t)(position ^ (uint64_t)1 << highest)};
}

/* The record of an id; NULL: no memory was made for it. */
static inline void *series_at(const struct series *self, uint32_t id) {
    struct series_slot slot = series_slot(self, id);
    if (unlikely(slot.segment >= SERIES_SEGMENTS)) return NULL;
    char *segment = __atomic_load_n(&self->segments[slot.segment], __ATOMIC_ACQUIRE);
    return likely(segment) ? segment + (size_t)slot.record * self->record_size : NULL;
}

/* The id of a record; SERIES_NONE: the record is not in this series. */
uint32_t series_id(const struct series *self, const void *record);
/* Makes sure that the segment of `id` exists. False: there is no memory, or `id` is not below `limit`. */
bool series_reserve(struct series *self, uint32_t id);
/* Forgets all records. A forked child calls it, for example, because the records are in the parent's ledger. */
void series_reset(struct series *self);

#pragma GCC visibility pop

#endif
