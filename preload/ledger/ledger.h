/* ledger.h — the mapped file of a process (snapshot.h is its format).
 * In: requests for sections and records from account, site, blocks and mappings. Out: memory that survives the
 * process. It never waits for a lock longer than a bounded spin, and never leaves a descriptor open. */
#ifndef MEMSTOW_LEDGER_H
#define MEMSTOW_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* The process that the ledger is made for; process.c reads it from the environment. Strings must outlive the ledger. */
struct ledger_identity {
    const char *path; /* absolute; NULL: memory only */
    const char *name; /* program */
    const char *exe;
    const char *command;
    uint8_t run_id[16];
    uint32_t stacks, allocator, flags, fork_depth, exec_generation, header_overhead;
    uint64_t inherited_bytes, sample_bytes;
};

/* The header of the present ledger; a private scratch header while there is none, so that it can always be
 * written to. */
extern struct snap_header *ledger_head;

/* False in a child that a signal handler forked and that goes on with what the handler interrupted: the present ledger
 * is the parent's, and no record may be made in it. Asks nothing of the kernel, which wipes the answer in a child.
 * (Before Linux 4.14 it does not, and this is always true.) */
bool ledger_is_ours(void);

/* Makes the file, or memory of the same shape where a file is not safe (docs/decisions/0026-ledger-file.md). False:
 * there is not even memory. Call it once per process, from one thread. */
bool ledger_begin(const struct ledger_identity *identity);

/* Forgets a ledger inherited over fork: it belongs to the parent, which goes on writing to it. */
void ledger_abandon(void);

/* Marks the end, gives unused room of the file back; a memory-only ledger is written out now if it can be. */
void ledger_end(enum snap_state state);

/* The process goes on after all: exec failed. */
void ledger_resume(void);

/* The file of the ledger; "" when it is in memory only. */
const char *ledger_path(void);

/* Whether the file at `path` is the ledger of an earlier image of this process. */
bool ledger_made_by_us(const char *path);

/* Removes the file of the ledger if it is still the one that was made: for a forked child that is about to exec. */
void ledger_unlink(void);

/* Writes down where the library's own memory lies, for the residency report: at the start, the end, and whenever a
 * large table was added. */
void ledger_note_own_memory(void);

static inline void ledger_lost(enum snap_lost what) {
    __atomic_fetch_add(&ledger_head->lost[what], 1, __ATOMIC_RELAXED);
}

/* Records of one type, numbered from 0, in sections that double in size. Ids are stable, records never move. */
enum { SERIES_SEGMENTS = 24 };
struct series {
    uint32_t type;
    uint32_t record_size;
    uint32_t first_bits; /* binary logarithm of how many the first section holds */
    uint32_t limit;      /* ids at and above are refused */
    bool anchored;       /* the first record of each section is none, but begins with its own address */
    uint64_t next;       /* next id to give */
    char *segments[SERIES_SEGMENTS];
    struct snap_section *sections[SERIES_SEGMENTS];
};
enum { SERIES_NONE = UINT32_MAX };

/* Takes a new id, or SERIES_NONE when there is no room. */
uint32_t series_take(struct series *self);
/* The first of `count` new ids, whose records follow each other in memory; or SERIES_NONE. */
uint32_t series_take_run(struct series *self, uint32_t count);

/* Where an id's record lies: as the k-th segment holds 2^k times as many as the first, the highest bit of `position`
 * says which segment, and the others which of its records. */
struct series_place {
    uint32_t segment, record;
};
static inline struct series_place series_place(const struct series *self, uint32_t id) {
    uint64_t position = (uint64_t)id + (1u << self->first_bits);
    uint32_t highest = 63u - (uint32_t)__builtin_clzll(position);
    return (struct series_place){highest - self->first_bits, (uint32_t)(position ^ (uint64_t)1 << highest)};
}

/* NULL when it was never taken. */
static inline void *series_at(const struct series *self, uint32_t id) {
    struct series_place place = series_place(self, id);
    if (unlikely(place.segment >= SERIES_SEGMENTS)) return NULL;
    char *segment = __atomic_load_n(&self->segments[place.segment], __ATOMIC_ACQUIRE);
    return likely(segment) ? segment + (size_t)place.record * self->record_size : NULL;
}

/* The id of a record that it has. */
uint32_t series_id(const struct series *self, const void *record);
/* Makes sure that the segment of `id` exists. */
bool series_reserve(struct series *self, uint32_t id);
void series_reset(struct series *self);

/* A whole section of its own, for tables with their own addressing: `capacity` zeroed records; NULL: no room. */
void *ledger_section(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first);

/* Appends to the string pool; "" and whatever does not fit give 0. */
uint32_t ledger_string(const char *text);
/* The string there; "" of one that is not, or comes after the first 16 MiB of them. */
const char *ledger_text(uint32_t at);

void ledger_fact(enum snap_fact_key key, const char *text);

#pragma GCC visibility pop

#endif
