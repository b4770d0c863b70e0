/* budget.h — how much memory call stacks, sites and counters may still take, and requests to free some.
 * In: how much they take now. Out: the steps (enum budget) that this size has reached; requests for memory, which
 * fold.c fulfils by removing old stacks (a fold). The question whether a step is reached must cost next to nothing,
 * because each new stack asks it. */
#ifndef MEMSTOW_BUDGET_H
#define MEMSTOW_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* Steps in which the memory runs out. Each step restricts more than the step before it. */
enum budget {
    BUDGET_SOON, /* so much memory is used that it is time to look for old stacks; how much depends on budget_pays */
    /* A new stack must take the place of an old one (fold.h). If it cannot, the event counts at the nearest outer
     * stack. Threads get no more counters of their own. */
    BUDGET_STACKS,
    BUDGET_ENDS,   /* outer stacks without counts get no site */
    BUDGET_FRAMES, /* no new frames are recorded, and new stacks lack them */
};
/* Whether call stacks, sites and counters together take so much memory that the step is reached. */
bool budget_is_full(enum budget of);
/* Whether new stacks will still get memory after `bytes` more were used. */
bool budget_has(uint64_t bytes);

enum { BUDGET_IDS = 1024 };
struct budget_use {
    uint64_t bytes, of_frames; /* used bytes; the part of them that holds frames */
    uint64_t ids; /* used ids, in units of 1/BUDGET_IDS of all ids that there can be. Ids can run out, like memory */
};
/* Sets the limit to `bytes`, and the function that returns how much is used now. */
void budget_begin(uint64_t bytes, struct budget_use (*use)(void));

/* --- requests for memory --- */

/* What a request asks for. BUDGET_LEAST_USED: remove the least used stacks. BUDGET_RUNS: remove sites that earlier
 * runs of the program's work left behind. */
enum { BUDGET_LEAST_USED = 1, BUDGET_RUNS = 2 };
extern uint32_t budget_wanted;
static inline void budget_ask(uint32_t what) {
    if (!(os_load32(&budget_wanted) & what)) __atomic_fetch_or(&budget_wanted, what, __ATOMIC_RELAXED);
}
/* wants: how many times memory for a new stack was short (budget_want). A fold is worth its time when `wants` reaches
 * wants_until, or when the ledger's count of lost stacks (SNAP_LOST_STACKS) reaches losses_until. */
extern uint64_t budget_wants, budget_wants_until, budget_losses_until;

/* Call it when there was no memory for a stack, or will soon be none. */
static inline void budget_want(void) {
    if (__atomic_add_fetch(&budget_wants, 1, __ATOMIC_RELAXED) >= os_load(&budget_wants_until))
        budget_ask(BUDGET_LEAST_USED);
}

/* If even the outer part of a stack gets no memory, the stack is lost. budget_want is not called for lost stacks. So
 * this function makes a request once there are budget_losses_until of them. */
static inline void budget_note_losses(void) {
    if (unlikely(os_load(&ledger_head->lost[SNAP_LOST_STACKS]) >= os_load(&budget_losses_until)))
        budget_ask(BUDGET_LEAST_USED);
}

/* How much memory must be used before the next fold begins. 1: half of the limit, because the newest fold found enough
 * dead stacks, or because there was no fold yet. 0: nearly the whole limit. */
extern uint32_t budget_pays;

/* How many ids new stacks are expected to take while a fold is at work. */
extern uint32_t budget_reserve;

/* Whether so few ids are free that a fold should begin. */
static inline bool budget_is_short(uint64_t free, uint64_t all) {
    return free < all / 64 + __atomic_load_n(&budget_reserve, __ATOMIC_RELAXED);
}

/* A fold of old runs is worth its time when runs have made this many sites since the previous such fold. */
enum { BUDGET_RUN_SITES = 1 << 15 };
/* run_sites: the sites that were made for runs. run_sites_until: from this count on, a fold of old runs is worth it. */
extern uint64_t budget_run_sites, budget_run_sites_until;
static inline void budget_note_run_site(void) { __atomic_fetch_add(&budget_run_sites, 1, __ATOMIC_RELAXED); }

static inline void budget_note_run_end(void) {
    if (os_load(&budget_run_sites) >= os_load(&budget_run_sites_until)) budget_ask(BUDGET_RUNS);
}

/* Does a slice of the requested work, if it can be done now. The caller must not be using the id of a site. The caller
 * may have a pin (pin.h); `slot` says which pin it is. fold.c sets this pointer. */
extern void (*budget_relieve)(uintptr_t slot);

#pragma GCC visibility pop

#endif
