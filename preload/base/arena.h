/* arena.h — private memory for the library's own tables.
 * In: sizes. Out: zeroed memory whose addresses stay ours for good. Any hook, thread or signal handler may call. It
 * takes no lock, and uses no allocator of the program. */
#ifndef MEMSTOW_ARENA_H
#define MEMSTOW_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Zeroed, 64-byte aligned memory; NULL when the system refuses. A request of ARENA_OWN bytes or more gets a mapping of
 * its own, and only touched pages of that mapping cost memory. */
void *arena_take(size_t length);

/* Like arena_take, for a table that is read in random order. From 2 MiB on, the table lies in large pages if the system
 * has them. A look-up then costs one cache miss, without further misses for the translation of its address. */
void *arena_take_table(size_t length);

/* Gives the whole pages of a table to the system when its content is not needed any more. A thread that still reads
 * the table finds 0 there, or the old content. */
void arena_drop(void *memory, size_t length);

/* A pointer to the function that notes in the ledger where the library's own memory lies. NULL: there is no ledger. The
 * pointer is set once, before there is a second thread. Call arena_note_grown after a table has grown. */
extern void (*arena_grown)(void);
static inline void arena_note_grown(void) {
    if (arena_grown) arena_grown();
}

enum { ARENA_OWN = 65536, ARENA_RANGES = 64 };

/* Writes to `out` the ranges of addresses that the arena has taken from the system, and returns how many it has
 * written. Adjacent ranges are joined. Ranges beyond the first ARENA_RANGES are left out. */
uint32_t arena_ranges(struct snap_range out[ARENA_RANGES]);

#pragma GCC visibility pop

#endif
