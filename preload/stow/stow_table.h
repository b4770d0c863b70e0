/* stow_table.h — which addresses stow files back, and which chunk is on its way. In: regions and chunks from the
 * movers; the program's changes from the hooks. Out: which thread must wait for which. There is one lock, held for
 * microseconds, with signals out. A chunk on its way is a range that others wait for, not a lock. A thread may take the
 * lock again while it has it, as it does between the two halves of a fork. */
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

void table_lock(void);
void table_unlock(void);

/* All below: with the lock held. */

/* Waits, without the lock meanwhile, until no chunk that overlaps the range is in flight. */
void table_wait(uint64_t start, uint64_t end);

/* Adds a region over whatever was there; joins neighbours. False: no memory for the table. */
bool table_put(uint64_t start, uint64_t end, uint32_t owner);
/* Takes the range out, in parts of regions where it must. */
void table_take(uint64_t start, uint64_t end);
/* The first part of a region that lies in the range. */
bool table_first(uint64_t start, uint64_t end, struct stow_region *out);
uint32_t table_count(void);
struct stow_region *table_regions(void);
/* Room for so many more regions; false when there is none. */
bool table_reserve(uint32_t more);

/* A chunk is in flight from begin to end; one at a time. table_begin waits for its turn. */
void table_begin(uint64_t start, uint64_t end);
void table_end(void);
bool table_is_moving(uint64_t address);

/* Releases, in the child, the lock that was taken before the fork. */
void table_leave_in_child(void);
/* In a forked child: nobody holds the lock, nothing is in flight. */
void table_abandon(void);

#pragma GCC visibility pop

#endif
