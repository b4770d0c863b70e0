/* stow_table.h — the table of regions, and the chunk that is moving now. A region is a range of addresses whose content
 * lies in a stow file (a file that holds moved memory).
 * In: regions and chunks, from the movers; the program's changes, from the hooks. Out: regions; a thread that asks for
 * a range waits while a chunk in it moves. There is one lock, held with signals blocked. A moving chunk is a range that
 * others wait for, not a lock. A thread that has the lock may take it again, as happens around a fork. */
#ifndef MEMSTOW_STOW_TABLE_H
#define MEMSTOW_STOW_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_region {
    uint64_t start, end;
    uint32_t owner;
    uint32_t pad;
};

void stow_table_lock(void);
void stow_table_unlock(void);

/* The caller of everything below holds the lock, except in stow_table_abandon. */

/* Waits until no moving chunk overlaps the range. The lock is released during the wait. */
void stow_table_wait(uint64_t start, uint64_t end);

/* Adds a region. It replaces all earlier regions between `start` and `end`. If it touches the region before it, and
 * the two have the same owner, they become one region. Returns false if there is no memory for the table. */
bool stow_table_put(uint64_t start, uint64_t end, uint32_t owner);
/* Takes the range out of the table. Regions may be cut. */
void stow_table_take(uint64_t start, uint64_t end);
/* Finds the first part of a region that lies in the range. False: there is none. */
bool stow_table_first(uint64_t start, uint64_t end, struct stow_region *out);
uint32_t stow_table_count(void);
struct stow_region *stow_table_regions(void);
/* Makes capacity for `more` regions. False: there is no memory. */
bool stow_table_reserve(uint32_t more);

/* A chunk moves from stow_table_begin to stow_table_end. Only one chunk moves at a time, so stow_table_begin waits
 * while another chunk moves. */
void stow_table_begin(uint64_t start, uint64_t end);
void stow_table_end(void);

/* In a forked child: releases the lock that was taken before the fork. */
void stow_table_leave_in_child(void);
/* In a forked child: notes that nobody holds the lock and nothing is moving. */
void stow_table_abandon(void);

#pragma GCC visibility pop

#endif
