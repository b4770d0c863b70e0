/* owned.h — how much memory owners have, and where: sums over call sites, large blocks and mappings.
 * In: the ledger's own tables, while threads go on allocating. Out: figures by owner; the pieces of an owner's memory
 * that can be moved. Call these functions outside of hooks only: with a million sites they take milliseconds. */
#ifndef MEMSTOW_OWNED_H
#define MEMSTOW_OWNED_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

struct owned {
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t mapped_bytes;  /* the mapped part of live_bytes */
    uint64_t cuda_bytes;    /* device memory, not part of live_bytes */
    uint64_t movable_bytes; /* whole pages of large blocks and anonymous mappings, and served device memory */
    uint64_t stowed_bytes;  /* the stowed part of movable_bytes; for a value of the store: its bytes in a file */
    /* the parts of movable_bytes and stowed_bytes that are device memory */
    uint64_t device_movable_bytes, device_stowed_bytes;
    uint64_t on_device_bytes[MEMSTOW_DEVICES]; /* for each device, the part of cuda_bytes that is on this device now */
};

/* Figures of owners 1 to `count` - 1, each at its id; entry 0 belongs to no owner. An adopter's figures include its
 * adopted owners. Returns NULL if there is no memory. owned_let_go frees the array. */
struct owned *owned_of_all(uint32_t count);
void owned_let_go(struct owned *all, uint32_t count);
/* Figures of tags 1 to `count` - 1 (tags.h), each at its number, without adoption. Only live_bytes, live_blocks,
 * allocated_bytes and cuda_bytes are set. Returns NULL if there is no memory. owned_let_go frees the array. */
struct owned *owned_of_tags(uint32_t count);

/* What the store does for its values (state_owner.h), which belong to owners and may lie in files of the store. `visit`
 * calls its argument for each value. `stowed` returns how many bytes an owner has in files. `move` moves an owner's
 * values to files (if `out`) or back to memory. The store sets the pointer owned_store when the store's first loop
 * begins. owned_store is NULL if there is no store. */
struct owned_store {
    void (*visit)(void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context), void *context);
    uint64_t (*stowed)(uint32_t owner);
    int64_t (*move)(uint32_t owner, bool out, struct move_end end);
};
extern const struct owned_store *owned_store;

/* Bytes of the owner's large blocks and mappings that are in memory now. Pages of stowed memory count only if they were
 * used after they were stowed. Returns UINT64_MAX if the kernel cannot be asked which pages are in memory. */
uint64_t owned_resident(uint32_t owner);

/* Kinds of memory, as bits. */
enum owned_pieces {
    OWNED_MEMORY = 1, /* large blocks and anonymous mappings */
    OWNED_FILES = 2,  /* mappings of files, whose clean pages can be given back */
    OWNED_DEVICE = 4, /* device memory, which has no pages, so owned_visit_pieces leaves it out */
};
typedef bool owned_visit(uintptr_t start, uint64_t length, void *context);
/* Calls visit for each piece of memory that the model or custom has, if the piece is of one of the kinds `which`. visit
 * gets whole pages only. If visit returns false, the walk ends. */
void owned_visit_pieces(uint32_t owner, uint32_t which, owned_visit *visit, void *context);

#pragma GCC visibility pop

#endif
