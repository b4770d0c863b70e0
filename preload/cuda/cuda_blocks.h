/* cuda_blocks.h — the table of what CUDA gave the program: memory, arrays, pools, physical memory, mappings, ranges. A
 * thread that works on a record claims it. Another thread waits for a claimed record, but only for a short time: then
 * it goes on as if there were no such record, and this is counted as lost. Only the growth of the table takes a lock.
 * In: additions after the driver's call; removals, most of them before the driver's call. Out: look-ups by address or
 * handle, and the ledger's CUDA_BLOCK records. These records are the table; only the index of keys is private. A forked
 * child begins with an empty table: it does not inherit device memory. */
#ifndef MEMSTOW_CUDA_BLOCKS_H
#define MEMSTOW_CUDA_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* The kinds of numbers that identify blocks. Equal numbers in different spaces identify different blocks. */
enum cuda_space {
    CUDA_ADDRESS,
    CUDA_PHYSICAL, /* identified by a number of ours: the driver may reuse a handle while its memory is still mapped */
    CUDA_HANDLE,   /* a handle of physical memory, which ends after `users` releases: `pool` is that memory's number */
    CUDA_MAPPING,  /* a mapping of physical memory: `pool` is that memory's number */
    CUDA_RANGE,    /* the start of reserved addresses, or of host memory in which memstow keeps content of a device */
    CUDA_ARRAY,
    CUDA_POOL,
    CUDA_PART /* a part of a block: the part's own address; `pool` is the block's address */
};

/* Adds a block. The table must have no block with the same number in this space. If there is no memory for the record,
 * the block is counted as lost, and the function returns false. */
bool cuda_blocks_add(enum cuda_space space, const struct snap_cuda_block *block);
/* Removes the record and copies it to *out. Returns false if there is no record. If two threads take the same number at
 * once, only one of them gets the record. */
bool cuda_blocks_take(enum cuda_space space, uint64_t number, struct snap_cuda_block *out);
/* Removes the record only if `is` returns true. While `is` runs, the record is claimed, so no other thread changes it.
 * Returns false if the record stays, or if there is no record. */
typedef bool cuda_blocks_test(const struct snap_cuda_block *block, const void *context);
bool cuda_blocks_take_if(enum cuda_space space, uint64_t number, cuda_blocks_test *is, const void *context,
                         struct snap_cuda_block *out);
bool cuda_blocks_find(enum cuda_space space, uint64_t number, struct snap_cuda_block *out);

struct cuda_hold {
    uint64_t *key;
    struct snap_cuda_block *record;
};
/* Returns the record itself, so that the caller can change its flags, users, count or pool. Returns NULL if there is no
 * such record. Other threads that want the record wait until cuda_blocks_let_go. */
struct snap_cuda_block *cuda_blocks_hold(enum cuda_space space, uint64_t number, struct cuda_hold *hold);
void cuda_blocks_let_go(const struct cuda_hold *hold);

/* Calls visit for a copy of each record, in no order. */
typedef void cuda_blocks_visit(enum cuda_space space, const struct snap_cuda_block *block, void *context);
void cuda_blocks_all(cuda_blocks_visit *visit, void *context);

#pragma GCC visibility pop

#endif
