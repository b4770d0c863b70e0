/* budget.h — whether call stacks, sites and counters may take more memory, and the requests for room when they may not.
 * In: how much they have, from the rooms that know it. Out: the things for which there is no memory any more; requests
 * for room, which fold.c fulfils. It must cost next to nothing: each new stack asks it. */
#ifndef MEMSTOW_BUDGET_H
#define MEMSTOW_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* Whether call stacks, sites and counters together have all the memory that they may take. First there are no new
 * stacks but in place of old ones (fold.h), an event counts at the nearest outer stack that is there, and threads get
 * no more counters of their own; then outer stacks that nothing was counted at get no site; at last there are no
 * frames, and stacks lack them. BUDGET_SOON: it is time to look for old ones. */
enum budget { BUDGET_SOON, BUDGET_STACKS, BUDGET_ENDS, BUDGET_FRAMES };
bool budget_is_full(enum budget of);
/* Whether there will still be room for new stacks when so much more is taken. */
bool budget_has(uint64_t bytes);

/* Bytes in use, and those of them that hold frames; whether anything was given back yet. */
struct budget_use {
    uint64_t bytes, of_frames;
    bool gave_back;
};
/* `use` adds them up. */
void budget_begin(uint64_t limit, struct budget_use (*use)(void));

/* --- requests for room --- */

/* The reason: BUDGET_ROOM, then the least used goes; BUDGET_RUNS, then what earlier runs left behind. */
enum { BUDGET_ROOM = 1, BUDGET_RUNS = 2 };
extern uint32_t budget_wanted;
static inline void budget_ask(uint32_t what) {
    if (!(os_load32(&budget_wanted) & what)) __atomic_fetch_or(&budget_wanted, what, __ATOMIC_RELAXED);
}
/* How often a stack was new while there was little room; after how often it is worth looking for more; or after how
 * many lost ones (SNAP_LOST_STACKS). */
extern uint64_t budget_wants, budget_wants_until, budget_losses_until;

/* There was no room for a stack, or soon will be none. */
static inline void budget_want(void) {
    if (__atomic_add_fetch(&budget_wants, 1, __ATOMIC_RELAXED) >= os_load(&budget_wants_until)) budget_ask(BUDGET_ROOM);
}

/* Stacks whose outer part has found no room are lost one after the other without asking for any. */
static inline void budget_note_losses(void) {
    if (unlikely(os_load(&ledger_head->lost[SNAP_LOST_STACKS]) >= os_load(&budget_losses_until)))
        budget_ask(BUDGET_ROOM);
}

/* So many ids will go while more are being looked for. */
extern uint32_t budget_reserve;

/* Whether so few of all ids are free that it is time to look for more. */
static inline bool budget_is_short(uint64_t free, uint64_t all) {
    return free < all / 64 + __atomic_load_n(&budget_reserve, __ATOMIC_RELAXED);
}

enum { BUDGET_RUN_SITES = 1 << 15 };
/* How many sites were made for runs; with how many it is worth looking for those that are of no use any more. */
extern uint64_t budget_run_sites, budget_run_sites_until;
static inline void budget_note_run_site(void) { __atomic_fetch_add(&budget_run_sites, 1, __ATOMIC_RELAXED); }

/* A run has ended. */
static inline void budget_note_run_end(void) {
    if (os_load(&budget_run_sites) >= os_load(&budget_run_sites_until)) budget_ask(BUDGET_RUNS);
}

/* Does a slice of what was asked for, if it can be done now (fold_step). `slot`: the caller's pin. */
extern void (*budget_relieve)(uintptr_t slot);

#pragma GCC visibility pop

#endif
