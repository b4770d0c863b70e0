/* gone.c — see gone.h. */
#include "preload/blocks/gone.h"

#include "preload/shared/snapshot.h"
#include "preload/stacks/stack.h"

enum { GONE = 64 };

static struct gone entries[GONE]; /* one for each place that addresses share */

static struct gone *entry_at(uintptr_t address) {
    return &entries[(address >> 4) * 0x9E3779B97F4A7C15u >> 56 & (GONE - 1)];
}

void gone_note(const void *p, uint64_t size, uint32_t mark, uint32_t site, uintptr_t slot) {
    struct gone *at = entry_at((uintptr_t)p);
    __atomic_store_n(&at->address, 0, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE); /* the address before is gone before anything of this one is there */
    at->size = size;
    at->mark = mark;
    at->site = site;
    at->caller = (uint32_t)stack_address(slot);
    __atomic_store_n(&at->address, (uintptr_t)p, __ATOMIC_RELEASE);
}

bool gone_has(const void *p) {
    return __atomic_load_n(&entry_at((uintptr_t)p)->address, __ATOMIC_ACQUIRE) == (uintptr_t)p;
}

const struct gone *gone_at(uintptr_t address) { return entry_at(address); }

void gone_forget_sites(void) {
    for (int i = 0; i < GONE; i++) entries[i].site = SNAP_SITE_UNKNOWN;
}
