/* blocks.h — the lock-free table of blocks that are known by address: large ones (>= SNAP_LARGE_BYTES), and
 * page-aligned ones, which have no header in front of them or one that may not be looked for.
 * In: additions after the real allocation, removals before the real free. Out: look-ups by address, and the
 * ledger's LARGE records. The table itself is private memory, so that a forked child keeps a copy. */
#ifndef MEMSTOW_BLOCKS_H
#define MEMSTOW_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct block {
    uint64_t size;
    uint32_t site;
    uint32_t mark; /* as in a block's header; BLOCK_BARE set when it has none */
};

enum { BLOCK_BARE = 1 << 1 }; /* beside header.h's bits */

/* False when there is no memory for it: the caller must not rely on the table for this address. */
bool blocks_add(uintptr_t address, const struct block *block, uint32_t thread);
/* Takes the entry out; false when there is none. Of two racing calls for one address one gets it. */
bool blocks_take(uintptr_t address, struct block *out);
bool blocks_find(uintptr_t address, struct block *out);
/* Another site or mark for an entry whose block nobody frees meanwhile; false when there is none. */
bool blocks_change(uintptr_t address, const struct block *block);
/* The block that an address lies in, by looking at all of them; 0: in none. */
uintptr_t blocks_around(uintptr_t address, struct block *out);

/* After ledger_begin: gives every level its section in the new ledger. */
void blocks_open_ledger(void);
/* In a forked child: entries stay, their records are gone. */
void blocks_close_ledger(void);

/* Calls visit for every record of the ledger, in no order; to be used at exit. */
struct snap_large;
void blocks_visit_records(void (*visit)(struct snap_large *record, void *context), void *context);

#pragma GCC visibility pop

#endif
