/* fold.h — room for new call stacks when there is none, and no more memory for many runs than for some: stacks of which
 * nothing lives give up their ids.
 * In: the wish for room, runs that end. Out: free ids of sites, and free words of stacks. What was ever counted at such
 * a stack goes to an outer one, so that totals stay exact; which inner stack it was is forgotten, and counted
 * (SNAP_LOST_FOLDED).
 *
 * No thread waits. Ids that go are hidden first, so that nobody finds them any more; they are given away when every
 * thread has been seen twice without one in its hands (pin_begin). docs/stacks.md says why twice. All of that is done
 * in slices of half a millisecond, by whoever comes by with a stack that takes its time anyway. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/ledger/ledger.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* What for: FOLD_ROOM, then what was needed least goes; FOLD_RUNS, then what earlier runs left behind. */
enum { FOLD_ROOM = 1, FOLD_RUNS = 2 };
extern uint32_t fold_wanted;
static inline void fold_ask(uint32_t what) {
    if (!(os_load32(&fold_wanted) & what)) __atomic_fetch_or(&fold_wanted, what, __ATOMIC_RELAXED);
}
/* How often a stack was new while there was little room; after how often it is worth looking for more; or after how
 * many lost ones (SNAP_LOST_STACKS). */
extern uint64_t fold_wants, fold_wants_until, fold_losses_until;

/* There was no room for a stack, or soon will be none. */
static inline void fold_want(void) {
    if (__atomic_add_fetch(&fold_wants, 1, __ATOMIC_RELAXED) >= os_load(&fold_wants_until)) fold_ask(FOLD_ROOM);
}

/* Stacks whose outer part has found no room are lost one after the other without asking for any. */
static inline void fold_note_losses(void) {
    if (unlikely(os_load(&ledger_head->lost[SNAP_LOST_STACKS]) >= os_load(&fold_losses_until))) fold_ask(FOLD_ROOM);
}

/* So many ids will go while more are being looked for. */
extern uint32_t fold_reserve;

/* Whether so few of all ids are free that it is time to look for more. */
static inline bool fold_is_short(uint64_t free, uint64_t all) {
    return free < all / 64 + __atomic_load_n(&fold_reserve, __ATOMIC_RELAXED);
}

/* How many sites were made for runs; with how many it is worth looking for those that are of no use any more. */
extern uint64_t fold_run_sites, fold_run_sites_until;
static inline void fold_note_run_site(void) { __atomic_fetch_add(&fold_run_sites, 1, __ATOMIC_RELAXED); }

/* A run has ended. */
static inline void fold_note_run_end(void) {
    if (os_load(&fold_run_sites) >= os_load(&fold_run_sites_until)) fold_ask(FOLD_RUNS);
}

/* Does the next slice, if it can be done now. The caller has no ids in its hands, whatever its pin `slot` says. */
void fold_step(uintptr_t slot);

/* At the start. */
void fold_begin(void);
/* In a forked child. */
void fold_abandon(void);

#pragma GCC visibility pop

#endif
