/* gone.h — blocks that were known by address, and were freed last.
 * In: such a block, when it is freed. Out: what it was, until another takes its place here. It must not look at the
 * block's memory, which may be stowed or unmapped. Any thread, without a lock. */
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

/* A block is about to be freed by a hook with this slot (stack.h). */
void gone_note(const void *p, uint64_t size, uint32_t mark, uint32_t site, uintptr_t slot);
/* Whether a block was freed at p not long ago: its header may be unmapped. */
bool gone_has(const void *p);
/* What is known of it then. */
const struct gone *gone_at(uintptr_t address);

/* In a forked child: sites of what was freed before are those of the parent's ledger. */
void gone_forget_sites(void);

#pragma GCC visibility pop

#endif
