/* gone.h — the last freed blocks that were known by address. In: such a block, when it is freed. Out: its record, until
 * another takes its place here. It must not read the block's memory, which may be stowed or unmapped. Any thread,
 * without a lock. */
#ifndef MEMSTOW_GONE_H
#define MEMSTOW_GONE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct gone {
    uintptr_t address;
    uint64_t size;
    uint32_t mark, site, caller; /* caller: lower half of the return address of the call that freed it */
};

/* One for each place that addresses share. */
enum { GONE_BITS = 9 };
extern struct gone gone_entries[1 << GONE_BITS];

/* A block is about to be freed, or was moved, by a hook with this slot (stack.h). */
void gone_note(const void *p, uint64_t size, uint32_t mark, uint32_t site, uintptr_t slot);
/* The record of the block that was at an address, if gone_has it. */
static inline struct gone *gone_at(uintptr_t address) {
    return &gone_entries[(address >> 4) * 0x9E3779B97F4A7C15u >> (64 - GONE_BITS)];
}

/* Whether a block was freed at p not long ago: its header may be unmapped. */
static inline bool gone_has(const void *p) {
    return __atomic_load_n(&gone_at((uintptr_t)p)->address, __ATOMIC_ACQUIRE) == (uintptr_t)p;
}

/* Whether its header is. False where the kernel does not tell. */
bool gone_is_unmapped(const void *p);

/* Another block begins at p. */
void gone_forget(const void *p);

#pragma GCC visibility pop

#endif
