/* site.h — where an allocation comes from → site id.
 * In: a return address into the program. Out: the id of (tag, stack), for the block's header and the counters.
 * Never waits; what cannot be recorded becomes SNAP_SITE_UNKNOWN and is counted as lost. */
#ifndef MEMSTOW_SITE_H
#define MEMSTOW_SITE_H

#include <stdint.h>

#include "account.h"

#pragma GCC visibility push(hidden)

/* Counts the dlclose calls: code addresses may mean something else after one. */
extern uint32_t site_code_generation;

uint32_t site_find(uintptr_t return_address);

/* A cache entry is the upper bits of the return address and the site, in one word, so that no signal handler
 * ever sees half of one. The lower bits are its index. */
enum { SITE_INDEX_BITS = 9 };
_Static_assert(1 << SITE_INDEX_BITS == ACCOUNT_CACHE, "index bits");
_Static_assert(47 - SITE_INDEX_BITS + ACCOUNT_SITE_BITS <= 64, "address and site share a word");

/* The site if it is known at once, else SITE_MISSED, which no counter is near of. */
enum { SITE_MISSED = -1 };
static inline uint32_t site_cached(const struct thread *self, uintptr_t return_address) {
    uint64_t entry = self->cache[return_address % ACCOUNT_CACHE];
    uint64_t differs = entry ^ (uint64_t)(return_address >> SITE_INDEX_BITS) << ACCOUNT_SITE_BITS;
    bool known = differs >> ACCOUNT_SITE_BITS == 0 && self->code_generation == site_code_generation;
    return likely(known) ? (uint32_t)differs : (uint32_t)SITE_MISSED;
}

static inline uint32_t site_of(uintptr_t return_address) {
    if (account_here) return account_here;
    uint32_t site = site_cached(account_self, return_address);
    return likely(site != (uint32_t)SITE_MISSED) ? site : site_find(return_address);
}

/* A new site with a record in the ledger, or SNAP_SITE_UNKNOWN. */
uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module);

struct snap_peak *site_peak(uint32_t site);
uint32_t site_count(void);

/* The program's own path must outlive the ledger. */
void site_begin(uint32_t stacks, const char *program);
void site_abandon(void);

#pragma GCC visibility pop

#endif
