/* gone.h — the blocks from the table (blocks.h) that were freed most recently.
 * In: a block, when it is freed. Out: its record, until a later block overwrites it. It must not read the block's
 * memory, which may be stowed or unmapped. Any thread may call, without a lock. */
#ifndef MEMSTOW_GONE_H
#define MEMSTOW_GONE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct gone {
    uintptr_t address;
    uint64_t size;
    uint32_t mark, site;
    uintptr_t caller; /* return address of the call that freed the block */
};

/* The hash of an address has GONE_BITS bits. Addresses with the same hash share one entry. */
enum { GONE_BITS = 9 };
extern struct gone gone_entries[1 << GONE_BITS];

/* Notes a block that is about to be freed, or that realloc has put at another address. `slot`: where the return address
 * of the hook lies on the stack (stack.h). */
void gone_note(const void *p, uint64_t size, uint32_t mark, uint32_t site, uintptr_t slot);
/* The record of the block that was at an address. Valid only if gone_has(address). */
static inline struct gone *gone_at(uintptr_t address) {
    return &gone_entries[(address >> 4) * 0x9E3779B97F4A7C15u >> (64 - GONE_BITS)];
}

/* Whether gone_entries has a block at p. If so, perhaps the memory in front of p is unmapped. */
static inline bool gone_has(const void *p) {
    return __atomic_load_n(&gone_at((uintptr_t)p)->address, __ATOMIC_ACQUIRE) == (uintptr_t)p;
}

/* Whether gone_entries has a block at p whose header is unmapped. False if the kernel does not tell. */
bool gone_is_unmapped(const void *p);

/* Call it when a new block begins at p. */
void gone_forget(const void *p);

#pragma GCC visibility pop

#endif
