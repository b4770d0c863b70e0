/* blocks.h — the table of blocks that are found by their address: large blocks (>= SNAP_LARGE_BYTES), and page-aligned
 * blocks that have no header, or a header that may be unsafe to read. Threads wait only while the table grows.
 * In: additions after the real allocation, removals before the real free. Out: look-ups by address, and the LARGE
 * records of the ledger. The table is private memory, so a forked child keeps a copy. */
#ifndef MEMSTOW_BLOCKS_H
#define MEMSTOW_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct block {
    uint64_t size;
    uint32_t site;
    uint32_t mark; /* as in a block's header; BLOCK_BARE: the block has no header */
};

enum { BLOCK_BARE = 1 << 1 }; /* a bit that header.h does not use */

/* Adds a block. False: the table could not grow, and does not know the block. */
bool blocks_add(uintptr_t address, const struct block *block, uint32_t thread);
/* Takes a block out of the table, and copies its entry to *out. False: there is no entry. If two threads take the same
 * address at once, only one of them gets the entry. */
bool blocks_take(uintptr_t address, struct block *out);
bool blocks_find(uintptr_t address, struct block *out);
/* Changes site and mark of an entry. The caller knows that nobody frees the block now. False: there is no entry. */
bool blocks_change(uintptr_t address, const struct block *block);
/* Returns the start of the block that contains the address, or 0 if no block contains it. This is slow, because it
 * looks at every entry. */
uintptr_t blocks_around(uintptr_t address, struct block *out);

/* Call it after ledger_begin. It gives every level of the table its section in the new ledger. */
void blocks_open_ledger(void);
/* In a forked child: the entries stay in the table, but have no records in a ledger any more. */
void blocks_close_ledger(void);

struct snap_large;
/* Calls visit for the LARGE record of each block, in no order. It is for the end of the process. */
void blocks_visit_records(void (*visit)(struct snap_large *record, void *context), void *context);

#pragma GCC visibility pop

#endif
