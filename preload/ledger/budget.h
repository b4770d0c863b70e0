/* budget.h — whether call stacks, sites and counters may take more memory, and requests for memory when they may not.
 * In: their present size, from the rooms that know it. Out: which of them are full; requests for memory, which fold.c
 * fulfils. It must cost next to nothing, because each new stack asks. */
#ifndef MEMSTOW_BUDGET_H
#define MEMSTOW_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* The memory fills up in steps. */
enum budget {
    BUDGET_SOON, /* it is time to look for old stacks */
    /* New stacks only replace old ones (fold.h); otherwise an event counts at the nearest outer stack. Threads get no
     * more counters of their own. */
    BUDGET_STACKS,
    BUDGET_ENDS,   /* outer stacks without counts get no site */
    BUDGET_FRAMES, /* no new frames are recorded, and new stacks lack them */
};
/* Whether call stacks, sites and counters together have used their memory up to this step. */
bool budget_is_full(enum budget of);
/* Whether new stacks will still get memory after that many bytes more. */
bool budget_has(uint64_t bytes);

enum { BUDGET_IDS = 1024 };
struct budget_use {
    uint64_t bytes, of_frames; /* used bytes; the part of them that holds frames */
    uint64_t ids;              /* used ids, in BUDGET_IDS-ths of all ids there can be. They run out as memory does */
    bool gave_back;            /* a fold has freed something by now */
};
/* `bytes`: the limit. `use` returns the present sum. */
void budget_begin(uint64_t bytes, struct budget_use (*use)(void));

/* --- requests for memory --- */

/* The reason for a request. BUDGET_LEAST_USED: remove the least used stacks. BUDGET_RUNS: remove sites that earlier
 * runs left behind. */
enum { BUDGET_LEAST_USED = 1, BUDGET_RUNS = 2 };
extern uint32_t budget_wanted;
static inline void budget_ask(uint32_t what) {
    if (!(os_load32(&budget_wanted) & what)) __atomic_fetch_or(&budget_wanted, what, __ATOMIC_RELAXED);
}
/* wants: how often little memory was left for a new stack. wants_until, losses_until: a fold is worth it from this
 * count of wants on, or from this count of lost stacks on (SNAP_LOST_STACKS). */
extern uint64_t budget_wants, budget_wants_until, budget_losses_until;

/* There was no memory for a stack, or soon there will be none. */
static inline void budget_want(void) {
    if (__atomic_add_fetch(&budget_wants, 1, __ATOMIC_RELAXED) >= os_load(&budget_wants_until))
        budget_ask(BUDGET_LEAST_USED);
}

/* A stack is lost without a request if even its outer part got no memory. So losses count as requests, too. */
static inline void budget_note_losses(void) {
    if (unlikely(os_load(&ledger_head->lost[SNAP_LOST_STACKS]) >= os_load(&budget_losses_until)))
        budget_ask(BUDGET_LEAST_USED);
}

/* The number of ids that stacks will take during a fold. */
extern uint32_t budget_reserve;

/* Whether so few ids are free that a fold should begin. */
static inline bool budget_is_short(uint64_t free, uint64_t all) {
    return free < all / 64 + __atomic_load_n(&budget_reserve, __ATOMIC_RELAXED);
}

/* A fold of old runs is worth its time when runs have made this many sites since the last such fold. */
enum { BUDGET_RUN_SITES = 1 << 15 };
/* run_sites: the sites that were made for runs. run_sites_until: from this count on, a fold of old runs is worth it. */
extern uint64_t budget_run_sites, budget_run_sites_until;
static inline void budget_note_run_site(void) { __atomic_fetch_add(&budget_run_sites, 1, __ATOMIC_RELAXED); }

/* A run has ended. */
static inline void budget_note_run_end(void) {
    if (os_load(&budget_run_sites) >= os_load(&budget_run_sites_until)) budget_ask(BUDGET_RUNS);
}

/* Does a slice of the requested work, if it can be done now. The caller uses no ids, even if its pin `slot` is set.
 * fold.c sets it. */
extern void (*budget_relieve)(uintptr_t slot);

#pragma GCC visibility pop

#endif
