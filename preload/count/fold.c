/* fold.c — see fold.h. A site is one call stack and its owners, as one number. A site is hidden while look-ups do not
 * find it. */
#include "preload/count/fold.h"

#include <linux/membarrier.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/count/origins.h"
#include "preload/count/counters.h"
#include "preload/base/ids.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/count/owner.h"
#include "preload/count/peak.h"
#include "preload/count/pin.h"
#include "preload/count/site.h"
#include "preload/ledger/budget.h"
#include "preload/stacks/generation.h"
#include "preload/stacks/tree.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

enum {
    CHUNK = SNAP_CHUNK_SITES,
    SLICE_NS = 500 * 1000,
    WAIT_NS = 50 * 1000,
    MUCH = 8,          /* a fold that frees one site in 8 is always worth its time */
    LITTLE = 64,       /* a fold that frees less than one site in 64 is never worth it */
    PATIENCE = 16,     /* after a fold that freed too little, the next waits until (sites / 16) stacks lack memory */
    RESERVE = 8,       /* at most one site in 8 is kept free */
    TIME_SHARE = 25,   /* folds that free less than MUCH may take 1/25 of the process's time */
    SOME_WANTS = 1024, /* so many stacks must lack memory before a fold is considered again */
};

/* Sites with the fewest allocations are removed first. The bucket of a site is 0 if it had no allocations, otherwise
 * the number of binary digits of the number of allocations. STAYS: the site is not removed. */
enum { BUCKETS = 65, STAYS = UINT8_MAX };

static struct {
    struct lock busy;
    bool of_runs;             /* true: this fold removes only sites that earlier runs left behind */
    uint32_t step;            /* index in steps[] or steps_of_runs[]; 0: no fold is under way */
    uint32_t at;              /* where the present step goes on: the number of a site or of a chunk */
    struct tree_walk tree;    /* where the present step is in the tree of stacks, or in the index of tagged sites */
    struct peak_walk picture; /* where the present step is in the pictures of the peak */
    uintptr_t slot;           /* the pin (pin.h) of the thread that does the slice */
    /* next: when the next slice may begin.
     * spent: how long folds took that found too few sites, in nanoseconds. A slice is added if three things hold at
     * its end: `of_runs` is false, `poor` is true, and budget_pays is 0 (the last fold that ended found too few sites,
     * too). */
    uint64_t next, spent;
    /* wants: budget_wants when this fold began; lost: how many stacks were lost when the previous fold ended */
    uint64_t wants, lost;
    uint8_t *buckets;              /* by site: its bucket, or STAYS */
    uint32_t looked_at;            /* the sites below this id have a bucket */
    uint32_t in_bucket[BUCKETS];   /* by bucket: how many sites it has */
    unsigned last_bucket;          /* the highest bucket whose sites are removed */
    uint32_t young, given;         /* young: new sites that could be removed; given: sites that were removed */
    bool poor;                     /* the newest search, in this fold or the previous one, found too few sites */
    bool paid;                     /* folds are within TIME_SHARE, so this one may go on even if it is `poor` */
    struct ids *going;             /* the sites to be removed: they are hidden from look-ups */
    struct site_outer_found outer; /* remembers outer sites while sites are given away */
    struct ids *pictured;          /* the sites of open descriptors and threads, and those in a picture of the peak */
    struct ids *known; /* sites that earlier folds let stay; their stacks are in use (tree_use). The set is emptied
                        * before all sites are looked at anew */
} fold;

static enum progress done_if(bool done) { return done ? PROGRESS_DONE : PROGRESS_MORE; }

static uint64_t lost_stacks(void) { return os_load(&ledger_head->lost[SNAP_LOST_STACKS]); }

/* --- whether a fold is worth its time --- */

static bool can_pay(void) { return fold.spent <= (os_now() - ledger_head->start_ns) / TIME_SHARE; }

/* Puts off the next fold until `stacks` more stacks have lacked memory, or have been lost. */
static enum progress not_before(uint64_t stacks) {
    __atomic_store_n(&budget_wants_until, os_load(&budget_wants) + stacks, __ATOMIC_RELAXED);
    __atomic_store_n(&budget_losses_until, lost_stacks() + 1 + stacks, __ATOMIC_RELAXED);
    return PROGRESS_OVER;
}

static bool register_barrier(void) {
    return os_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool make_ready(void) {
    if (!fold.buckets) fold.buckets = arena_take(SITE_LIMIT);
    return fold.buckets && ids_made(&fold.going) && ids_made(&fold.pictured) && ids_made(&fold.known) &&
           site_make_ready() && tree_make_ready() && register_barrier();
}

static enum progress fold_step_begin(void) {
    uint32_t wanted = os_load32(&budget_wanted);
    if (!wanted) return PROGRESS_OVER; /* another thread has just done the work */
    fold.of_runs = !(wanted & BUDGET_LEAST_USED);
    fold.paid = can_pay();
    if (!fold.of_runs && fold.poor && !fold.paid) return not_before(SOME_WANTS);
    if (!make_ready()) return not_before(UINT32_MAX);
    fold.wants = os_load(&budget_wants);
    fold.given = 0;
    memset(fold.in_bucket, 0, sizeof fold.in_bucket);
    ids_clear(fold.pictured);
    return PROGRESS_DONE;
}

/* --- choosing the sites to be removed --- */

static void picture_shows(uint32_t site) { ids_mark(fold.pictured, site); }

static enum progress find_pictured(void) {
    enum peak_listed listed = peak_sites(picture_shows, &fold.picture);
    if (listed != PEAK_ALL) return listed == PEAK_BUSY ? PROGRESS_LATER : PROGRESS_MORE;
    origins_sites(picture_shows);
    return PROGRESS_DONE;
}

static bool is_dead(const struct snap_counter *sum) {
    return sum->alloc_bytes == sum->free_bytes && sum->alloc_blocks == sum->free_blocks;
}

/* Whether a stack has one frame, the outermost, or none. Such stacks are not removed: there are few, and they get the
 * counts of removed stacks. */
static bool is_outermost(uint32_t stack) {
    if (stack == TREE_ROOT) return true;
    uint32_t place = tree_frame(stack) == SNAP_RUN_FRAME ? tree_outer(stack) : stack;
    return place == TREE_ROOT || tree_outer(place) == TREE_ROOT;
}

static bool may_go(uint32_t site, const struct snap_counter *sum) {
    struct snap_site record = site_record(site);
    return is_dead(sum) && record.word != SNAP_SITE_FREE && !ids_has(fold.pictured, site) &&
           !site_is_of_mapping(site) && !is_outermost(snap_site_stack(record));
}

static uint8_t bucket_of(const struct snap_counter *sum) {
    return sum->alloc_blocks ? (uint8_t)(64 - __builtin_clzll(sum->alloc_blocks)) : 0;
}

/* The sums of one chunk. They are not on the stack of the thread that folds, because it may be too small. */
static struct snap_counter sums[CHUNK];

/* Puts the sites of one chunk into buckets: those in fold.known if `known` is true, otherwise the others. */
static void look_at_chunk(uint32_t chunk, bool known) {
    bool summed = false;
    for (uint32_t i = 0, site = chunk * CHUNK; i < CHUNK; i++, site++) {
        if (!known) fold.buckets[site] = STAYS;
        if (ids_has(fold.known, site) != known || site < SNAP_SITE_FIRST || site >= site_count()) continue;
        if (!summed) counters_sum(chunk, sums);
        summed = true;
        if (may_go(site, &sums[i])) fold.in_bucket[fold.buckets[site] = bucket_of(&sums[i])]++;
    }
}

/* Chooses the highest bucket to remove, so that about half of all sites are removed. Returns how many sites the chosen
 * buckets hold. */
static uint32_t choose_buckets(uint32_t all) {
    uint32_t chosen = fold.in_bucket[fold.last_bucket = 0];
    while (chosen < all / 2 && fold.last_bucket < BUCKETS - 1) chosen += fold.in_bucket[++fold.last_bucket];
    return chosen;
}

static uint32_t sites_in_use(void) { return site_count() - (uint32_t)site_free_count(); }

/* Most stacks that die are young. So a fold looks first at the sites that are new since the previous fold. */
static enum progress look_at_young(void) {
    uint32_t all = sites_in_use();
    look_at_chunk(fold.at++, false);
    fold.looked_at = fold.at * CHUNK;
    if (fold.looked_at < site_count()) return PROGRESS_MORE;
    fold.young = choose_buckets(all);
    fold.poor = fold.young < all / MUCH;
    return PROGRESS_DONE;
}

/* Looks at the old sites if there were too few young ones. If the old ones do not double the number of sites to remove,
 * they stay. */
static enum progress look_at_old(void) {
    uint32_t all = sites_in_use(), chosen;
    if (!fold.poor) return PROGRESS_DONE;
    look_at_chunk(fold.at++, true);
    if (fold.at * CHUNK < fold.looked_at) return PROGRESS_MORE;
    chosen = choose_buckets(all);
    fold.poor = chosen < all / MUCH;
    if (fold.poor && (chosen < all / LITTLE || !fold.paid)) return not_before(all / PATIENCE);
    if (chosen / 2 < fold.young) return PROGRESS_DONE;
    ids_clear(fold.known);
    tree_forget_uses();
    return PROGRESS_DONE;
}

static bool is_of_earlier_run(uint32_t site) {
    uint32_t run = tags_at(snap_site_tag(site_record(site))).run;
    return run && run != tags_run();
}

/* Whether the counts of a site without a stack may move to a site of another run. Old runs form groups, and the first
 * run of each group gets the counts of the other runs (owner_first_of). The counts stay where they are if the site has
 * live blocks, belongs to a mapping, or is in fold.pictured. */
static bool may_join(uint32_t site, const struct snap_counter *sum) {
    struct snap_site record = site_record(site);
    return is_dead(sum) && snap_site_stack(record) == TREE_ROOT && !ids_has(fold.pictured, site) &&
           !site_is_of_mapping(site) && owner_first_of(tags_at(snap_site_tag(record)).run);
}

/* Marks sites of old runs. One fold may take all of them, because they are few, and later runs do not use them. */
static enum progress look_at_runs(void) {
    bool summed = false;
    uint32_t chunk = fold.at++;
    for (uint32_t i = 0, site = chunk * CHUNK; i < CHUNK && site < site_count(); i++, site++) {
        if (site < SNAP_SITE_FIRST || !is_of_earlier_run(site)) continue;
        if (!summed) counters_sum(chunk, sums);
        summed = true;
        if (may_go(site, &sums[i]) || may_join(site, &sums[i])) ids_mark(fold.going, site);
    }
    return done_if(fold.at * CHUNK >= site_count());
}

/* --- hiding the chosen sites and their stacks from look-ups --- */

static uint32_t *site_of_stack(uint32_t site) { return tree_site(snap_site_stack(site_record(site))); }

static bool is_tagged(uint32_t site) { return snap_site_tag(site_record(site)) != 0; }

/* Notes the chosen sites in fold.going, and hides those without a tag. If a site has come to life meanwhile,
 * show_used_sites shows it again. */
static enum progress hide_sites(void) {
    enum { AT_A_TIME = 1024 };
    for (uint32_t end = fold.at + AT_A_TIME; fold.at < end && fold.at < fold.looked_at; fold.at++) {
        uint32_t site = fold.at, seen = site;
        if (fold.buckets[site] > fold.last_bucket || ids_has(fold.known, site)) continue;
        if (!is_tagged(site))
            __atomic_compare_exchange_n(site_of_stack(site), &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        ids_mark(fold.going, site);
    }
    return done_if(fold.at >= fold.looked_at);
}

/* Adds all sites that stay to fold.known. Sites that are being made just now are added in the next fold. */
static enum progress know_sites(void) {
    enum { AT_A_TIME = 256 };
    uint32_t count = site_count();
    for (uint32_t end = fold.at + AT_A_TIME; fold.at < end && fold.at < count; fold.at++) {
        struct snap_site record = site_record(fold.at);
        if (!record.word || record.word == SNAP_SITE_FREE || ids_has(fold.going, fold.at)) continue;
        if (ids_mark(fold.known, fold.at)) tree_use(snap_site_stack(record));
    }
    return done_if(fold.at >= count);
}

/* Hides the chosen sites that have a tag. Also hides sites with a tag that are so new that know_sites has not added
 * them to fold.known. If a hidden site is in use, show_used_sites shows it again. */
static enum progress hide_tagged(void) { return done_if(site_hide_tagged(fold.known, fold.going, &fold.tree.index)); }

static enum progress hide_of_runs(void) { return done_if(site_hide_tagged(NULL, fold.going, &fold.tree.index)); }

static enum progress hide_stacks(void) { return tree_hide(&fold.tree); }

/* Makes threads look their stacks up anew. A hook pins its thread before it reads the generation, and the barrier makes
 * such pins visible. So the next step waits for each thread that may have read the old generation. */
static enum progress let_threads_forget(void) {
    generation_end_stacks();
    pin_epoch();
    bool done = !seal_is_set() && os_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
    return done ? PROGRESS_DONE : PROGRESS_LATER;
}

static enum progress fold_wait_for_all(void) { return pin_all_quiet(fold.slot) ? PROGRESS_DONE : PROGRESS_LATER; }

/* --- moving the counts of removed sites, and giving their ids away --- */

/* Makes look-ups find a hidden site again, unless its stack has got another site meanwhile. */
static void show_site(uint32_t site) {
    uint32_t none = 0;
    if (is_tagged(site))
        site_show_tagged(site);
    else
        __atomic_compare_exchange_n(site_of_stack(site), &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ids_remove(fold.going, site);
}

/* Whether look-ups find a site that was chosen for removal. They do if another thread was still making the site when
 * sites were hidden, and made it known afterwards. is_used takes such a site for used, even if nothing is ever counted
 * at it, because it may be the site of a mapping. */
static bool fold_is_shown(uint32_t site) {
    if (is_tagged(site)) return site_known_tagged(site_record(site)) == site;
    return __atomic_load_n(site_of_stack(site), __ATOMIC_RELAXED) == site;
}

static bool is_used(uint32_t site, const struct snap_counter *sum) {
    return !is_dead(sum) || site_is_of_mapping(site) || fold_is_shown(site);
}

/* Finds the next chunk with sites to remove, from the step's position on. False: there is none. */
static bool next_chunk(uint32_t *chunk) {
    uint32_t site = ids_next(fold.going, fold.at);
    if (site == IDS_NONE) return false;
    *chunk = site / CHUNK;
    fold.at = (*chunk + 1) * CHUNK;
    return true;
}

/* Makes look-ups find those hidden sites again that are in use: a thread still had their ids when they were hidden. No
 * thread will count an allocation at a site that stays hidden. But a thread may be in the middle of freeing the last
 * block of such a site. So the next step waits for all threads once more (docs/stacks.md). A picture of the peak that
 * begins after this wait contains no hidden site. */
static enum progress show_used_sites(void) {
    uint32_t chunk;
    if (!next_chunk(&chunk)) {
        pin_epoch();
        ids_clear(fold.pictured);
        memset(&fold.outer, 0, sizeof fold.outer);
        return PROGRESS_DONE;
    }
    counters_sum(chunk, sums);
    for (uint32_t i = 0, site = chunk * CHUNK; i < CHUNK; i++, site++)
        if (ids_has(fold.going, site) && is_used(site, &sums[i])) show_site(site);
    return PROGRESS_MORE;
}

/* Returns the tag that gets the counts of a removed site with the tag `number`. It has the same owners, but if the run
 * is old, the first run of that run's group takes its place (owner_first_of). 0: there is no memory for the tag. */
static uint32_t heir_tag(uint32_t number) {
    struct snap_tag tag = tags_at(number);
    uint32_t first = owner_first_of(tag.run);
    if (!first) return number;
    tag.run = first;
    return tags_number(tag);
}

static uint32_t tagged_heir(uint32_t site, uint32_t tag) {
    uint32_t number = heir_tag(tag), heir = number ? site_tagged(SNAP_SITE_UNKNOWN, number) : SNAP_SITE_UNKNOWN;
    return heir == site ? SNAP_SITE_UNKNOWN : heir;
}

/* Returns the site that gets the totals of a removed site (its heir); 0: the site stays after all. For a site with a
 * tag, the heir has the same owners and no stack. For a site without a tag, it is the site of an outer stack. */
static uint32_t heir_of(uint32_t site, const struct snap_counter *sum) {
    struct snap_site record = site_record(site);
    if (!is_dead(sum) || ids_has(fold.pictured, site)) return SNAP_SITE_UNKNOWN;
    if (snap_site_tag(record)) return tagged_heir(site, snap_site_tag(record));
    return site_outer(snap_site_stack(record), &fold.outer);
}

/* 1 if the site had allocations, and its heir has another stack; else 0. */
static uint64_t fold_forgotten(const struct snap_counter *sum, uint32_t site, uint32_t heir) {
    return sum->alloc_blocks && snap_site_stack(site_record(heir)) != snap_site_stack(site_record(site));
}

/* fold_sequence is odd during the move. It tells readers of the ledger that an id may have its old or its new stack,
 * and that moved counts may be there twice. */
static void move_totals(uint32_t chunk, const uint32_t heirs[CHUNK]) {
    __atomic_fetch_add(&ledger_head->fold_sequence, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < CHUNK; i++)
        if (heirs[i]) site_close(chunk * CHUNK + i);
    counters_move(chunk, heirs);
    __atomic_fetch_add(&ledger_head->fold_sequence, 1, __ATOMIC_SEQ_CST);
}

static void free_sites(uint32_t chunk, const uint32_t heirs[CHUNK]) {
    for (uint32_t i = 0; i < CHUNK; i += 64) {
        uint64_t bits = 0;
        for (uint32_t k = 0; k < 64; k++) bits |= (uint64_t)(heirs[i + k] != 0) << k;
        ids_unmark_word(fold.going, (chunk * CHUNK + i) / 64, bits);
        ids_unmark_word(fold.known, (chunk * CHUNK + i) / 64, bits);
        site_free(chunk * CHUNK + i, bits);
        fold.given += (uint32_t)__builtin_popcountll(bits);
    }
}

static enum progress give_sites_away(void) {
    uint32_t heirs[CHUNK] = {0}, chunk;
    uint64_t folded = 0;
    if (!next_chunk(&chunk)) return PROGRESS_DONE;
    counters_sum(chunk, sums);
    for (uint32_t i = 0, site = chunk * CHUNK; i < CHUNK; i++, site++) {
        if (!ids_has(fold.going, site)) continue;
        heirs[i] = heir_of(site, &sums[i]);
        if (heirs[i])
            folded += fold_forgotten(&sums[i], site, heirs[i]);
        else
            show_site(site);
    }
    move_totals(chunk, heirs);
    free_sites(chunk, heirs);
    __atomic_fetch_add(&ledger_head->lost[SNAP_LOST_FOLDED], folded, __ATOMIC_RELAXED);
    return PROGRESS_MORE;
}

static enum progress give_stacks_away(void) { return tree_give_away(&fold.tree); }

/* If stacks were lost for lack of memory since the previous fold, threads look their stacks up anew. */
static enum progress fold_end(void) {
    uint64_t wants = os_load(&budget_wants) - fold.wants, lost = lost_stacks();
    uint32_t all = sites_in_use();
    if (lost != fold.lost) generation_end_stacks();
    fold.lost = lost;
    uint32_t most = site_count() / RESERVE;
    __atomic_store_n(&budget_reserve, 2 * wants < most ? 2 * (uint32_t)wants : most, __ATOMIC_RELAXED);
    arena_drop(fold.buckets, SITE_LIMIT); /* the next fold fills them anew */
    ledger_note_own_memory();
    return not_before(fold.given < all / MUCH ? all / PATIENCE : 0);
}

static enum progress end_of_runs(void) {
    __atomic_store_n(&budget_run_sites_until, os_load(&budget_run_sites) + BUDGET_RUN_SITES, __ATOMIC_RELAXED);
    ledger_note_own_memory();
    return PROGRESS_OVER;
}

/* --- the steps of a fold, done in slices --- */

/* Does a part of a step. DONE: the step is complete. MORE: call it again. LATER: it cannot go on now. OVER: the fold
 * ends. */
typedef enum progress step_function(void);

static step_function *const steps[] = {
    fold_step_begin, find_pictured,   look_at_young,      look_at_old,       hide_sites,      know_sites,
    hide_tagged,     hide_stacks,     let_threads_forget, fold_wait_for_all, show_used_sites, fold_wait_for_all,
    find_pictured,   give_sites_away, know_sites,         give_stacks_away,  fold_end,
};
static step_function *const steps_of_runs[] = {
    fold_step_begin, find_pictured,     look_at_runs,  hide_of_runs,    let_threads_forget, fold_wait_for_all,
    show_used_sites, fold_wait_for_all, find_pictured, give_sites_away, end_of_runs,
};

static void go_to(uint32_t step) {
    fold.step = step;
    fold.at = 0;
    fold.tree = (struct tree_walk){0};
    fold.picture = (struct peak_walk){0};
}

/* Does a part of the present step. False: the fold is over, or cannot go on now. */
static bool fold_work(void) {
    enum progress progress = (fold.of_runs ? steps_of_runs : steps)[fold.step]();
    if (progress == PROGRESS_DONE) go_to(fold.step + 1);
    if (progress != PROGRESS_OVER) return progress != PROGRESS_LATER;
    go_to(0);
    if (!fold.of_runs) __atomic_store_n(&budget_pays, !fold.poor, __ATOMIC_RELAXED);
    __atomic_fetch_and(&budget_wanted, fold.of_runs ? ~BUDGET_RUNS : 0, __ATOMIC_RELAXED);
    return false;
}

/* Whether stacks are being lost, or half of the ids that were free when the fold began are used up. */
static bool is_urgent(void) {
    return lost_stacks() != fold.lost || !budget_is_short(2 * (os_load(&budget_wants) - fold.wants), site_count());
}

/* Does a slice of the fold. The next slice waits WAIT_NS if the fold is over or cannot go on now. Otherwise it waits as
 * long as this one took, or, if the fold is urgent, not at all. */
static void do_slice(void) {
    uint64_t began = os_now(), now = began;
    bool more = true;
    while (more && now - began < SLICE_NS) {
        more = fold_work();
        now = os_now();
    }
    if (fold.poor && !fold.of_runs && !os_load32(&budget_pays)) fold.spent += now - began;
    uint64_t pause = !more ? WAIT_NS : is_urgent() ? 0 : now - began;
    __atomic_store_n(&fold.next, now + pause, __ATOMIC_RELAXED);
}

/* Two kinds of process must not fold. One is a child that a signal handler forked in the middle of a hook: the ledger
 * is still its parent's. The other is a child of vfork, which may be killed at any time. */
static void fold_step(uintptr_t slot) {
    if (lock_is_held(&fold.busy) || os_now() < os_load(&fold.next)) return;
    if (seal_is_set() || os_pid() != ledger_head->pid || !lock_try(&fold.busy)) return;
    fold.slot = slot;
    do_slice();
    lock_let_go(&fold.busy);
}

/* Registers for membarrier now. Later, when threads run, the kernel would make the program wait some milliseconds. If
 * there is a system call filter, the first fold registers instead, because under a filter memstow makes a system call
 * only when the call is needed. */
void fold_begin(void) {
    budget_relieve = fold_step;
    if (os_call(SYS_prctl, PR_GET_SECCOMP) == 0) register_barrier();
}

static void fold_abandon(void) { memset(&fold, 0, sizeof fold); }
FORKED(fold_abandon);
