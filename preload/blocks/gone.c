/* gone.c — see gone.h. */
#include "preload/blocks/gone.h"

#include "preload/base/seal.h"
#include "preload/shared/os.h"
#include "preload/stacks/stack.h"

struct gone gone_entries[1 << GONE_BITS];

void gone_note(const void *p, uint64_t size, uint32_t mark, uint32_t site, uintptr_t slot) {
    struct gone *at = gone_at((uintptr_t)p);
    __atomic_store_n(&at->address, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* readers see 0 as the address before they see any new field */
    at->size = size;
    at->mark = mark;
    at->site = site;
    at->caller = stack_address(slot);
    __atomic_store_n(&at->address, (uintptr_t)p, __ATOMIC_RELEASE);
}

bool gone_is_unmapped(const void *p) {
    uint64_t word;
    return gone_has(p) && seal_settles() && !os_peek(&word, (const uint64_t *)p - 1, sizeof word) && os_can_peek();
}

void gone_forget(const void *p) {
    if (gone_has(p)) __atomic_store_n(&gone_at((uintptr_t)p)->address, 0, __ATOMIC_RELAXED);
}
