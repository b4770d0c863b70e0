/* owned.h — what owners have: sums over sites, large blocks and mappings. In: the ledger's own tables, at about this
 * moment: threads go on allocating meanwhile. Out: figures by owner; the pieces of an owner's memory that could be
 * moved. Outside of hooks only. It takes milliseconds where there are a million sites. */
#ifndef MEMSTOW_OWNED_H
#define MEMSTOW_OWNED_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

struct owned {
    uint64_t live_bytes, live_blocks, allocated_bytes;
    uint64_t mapped_bytes;  /* of live_bytes */
    uint64_t cuda_bytes;    /* of devices, beside them */
    uint64_t movable_bytes; /* whole pages of large blocks and of mappings, and what a device's memory holds */
    uint64_t stowed_bytes;  /* of them */
    uint64_t device_movable_bytes, device_stowed_bytes; /* of both, what was in a device's memory */
};

/* Figures of owners 0 to `count` - 1; 0 is memory without an owner. An adopter has what it adopted. NULL: no memory. */
struct owned *owned_of_all(uint32_t count);
void owned_let_go(struct owned *all, uint32_t count);
/* The same by tag (tags.h), 1 to `count` - 1, without adoption: of each the live and allocated bytes, and cuda_bytes.
 */
struct owned *owned_of_tags(uint32_t count);

/* Values of the store (state_store.h), which are owners' and lie in files of its own; it begins with its first loop.
 * NULL: there is none. */
struct owned_store {
    void (*visit)(void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context), void *context);
    uint64_t (*stowed)(uint32_t owner);
    int64_t (*move)(uint32_t owner, bool out, struct move_end end);
};
extern const struct owned_store *owned_store;

/* Bytes of the owner's large blocks and mappings that the process has in memory now (of stowed memory: what it used
 * since); UINT64_MAX: the kernel does not say. */
uint64_t owned_resident(uint32_t owner);

/* Calls visit for each run of whole pages of the model or custom: within a large block or an anonymous mapping, or in a
 * mapping of a file, whose pages need not be written to be given back. False from it ends the visit. */
enum owned_pieces { OWNED_MEMORY = 1, OWNED_FILES = 2, OWNED_DEVICE = 4 /* which has no pages */ };
typedef bool owned_visit(uintptr_t start, uint64_t length, void *context);
void owned_visit_pieces(uint32_t owner, uint32_t which, owned_visit *visit, void *context);

#pragma GCC visibility pop

#endif
