/* fold.c — see fold.h. */
#include "fold.h"

#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "account.h"
#include "ids.h"
#include "ledger.h"
#include "lock.h"
#include "peak.h"
#include "site.h"
#include "tree.h"

enum { BUCKETS = 65, LEAST_SHARE = 8, REST = 10, CHUNK = SNAP_CHUNK_SITES };

bool fold_wanted;

enum stage { IDLE, FIRST_WAIT, SECOND_WAIT };

static struct {
    struct lock busy;
    enum stage stage;
    struct ids *sites;    /* that are to go: hidden */
    struct ids *pictured; /* sites that a picture of the peak shows */
    struct ids *nodes;    /* of all stacks in use */
    uint64_t began, not_before;
    uint32_t worth, given; /* so many sites should become free; and did */
} fold;

/* --- what may go --- */

static void picture_shows(uint32_t site) { ids_mark(fold.pictured, site); }

static void find_pictured(void) {
    ids_clear(fold.pictured);
    peak_sites(picture_shows);
}

static bool is_dead(const struct snap_counter *sum) {
    return sum->alloc_bytes == sum->free_bytes && sum->alloc_blocks == sum->free_blocks;
}

/* The outermost stacks stay: they are few, and others are added to them. */
static bool may_go(uint32_t site, const struct snap_counter *sum) {
    struct snap_site record = site_record(site);
    return record.word != SNAP_SITE_FREE && !snap_site_tag(record) && is_dead(sum) && !ids_has(fold.pictured, site) &&
           !site_is_of_mapping(site) && tree_at(snap_site_stack(record))->parent != TREE_ROOT;
}

/* Stacks that allocated least often go first. */
static unsigned bucket_of(const struct snap_counter *sum) {
    return sum->alloc_blocks ? 64u - (unsigned)__builtin_clzll(sum->alloc_blocks) : 0;
}

static void each_that_may_go(void (*each)(uint32_t site, unsigned bucket)) {
    struct snap_counter sums[CHUNK];
    uint32_t count = site_count();
    for (uint32_t first = 0; first < count; first += CHUNK) {
        account_sum(first / CHUNK, sums);
        for (uint32_t i = first ? 0 : SNAP_SITE_FIRST; i < CHUNK && first + i < count; i++)
            if (may_go(first + i, &sums[i])) each(first + i, bucket_of(&sums[i]));
    }
}

static uint32_t in_bucket[BUCKETS];
static unsigned last_bucket;

static void count_bucket(uint32_t site, unsigned bucket) {
    (void)site;
    in_bucket[bucket]++;
}

/* About half of all sites, when so many are dead. False: hardly any. */
static bool choose_buckets(void) {
    uint32_t all = site_count() - (uint32_t)site_free_count(), chosen = 0;
    fold.worth = all / LEAST_SHARE;
    memset(in_bucket, 0, sizeof in_bucket);
    each_that_may_go(count_bucket);
    for (last_bucket = 0; last_bucket < BUCKETS - 1; last_bucket++) {
        chosen += in_bucket[last_bucket];
        if (chosen >= all / 2) break;
    }
    return chosen > fold.worth;
}

/* --- hiding --- */

static uint32_t *site_of_stack(uint32_t site) { return &tree_at(snap_site_stack(site_record(site)))->site; }

static void hide_site(uint32_t site, unsigned bucket) {
    uint32_t seen = site;
    if (bucket > last_bucket) return;
    __atomic_compare_exchange_n(site_of_stack(site), &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ids_mark(fold.sites, site);
}

/* Unless its stack has got another one. */
static void show_site(uint32_t site) {
    uint32_t none = 0;
    __atomic_compare_exchange_n(site_of_stack(site), &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    ids_remove(fold.sites, site);
}

static void show_all_sites(void) {
    for (uint32_t site = ids_next(fold.sites, 0); site != IDS_NONE; site = ids_next(fold.sites, site)) show_site(site);
}

/* Nodes of the stacks of all sites that are there and not about to go, and of the stacks around them. */
static void find_nodes(void) {
    ids_clear(fold.nodes);
    for (uint32_t site = SNAP_SITE_FIRST; site < site_count(); site++) {
        struct snap_site record = site_record(site);
        if (record.word == SNAP_SITE_FREE || ids_has(fold.sites, site)) continue;
        for (uint32_t node = snap_site_stack(record); node != TREE_ROOT; node = tree_at(node)->parent)
            if (!ids_mark(fold.nodes, node)) break;
    }
}

/* False: the system does not let us. */
static bool make_ready(void) {
    return ids_made(&fold.sites) && ids_made(&fold.pictured) && ids_made(&fold.nodes) &&
           os_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

/* False: nothing is hidden. */
static bool hide(void) {
    find_pictured();
    if (!choose_buckets()) return false;
    each_that_may_go(hide_site);
    find_nodes();
    if (tree_hide(fold.nodes)) return true;
    show_all_sites();
    return false;
}

/* Most of the time the program has to itself, whatever it does. */
static void rest(void) {
    uint64_t now = os_now();
    fold.not_before = now + REST * (now - fold.began);
}

/* Behind the barrier, whoever has not seen the new generation had its pin before. */
static void begin(void) {
    fold.began = os_now();
    if (!peak_hold()) return;
    bool hidden = make_ready() && hide();
    peak_let_go();
    rest();
    if (!hidden) return;
    site_forget_stacks();
    account_epoch();
    if (!ledger_is_sealed() && os_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0)
        fold.stage = FIRST_WAIT;
}

/* --- giving away --- */

/* A site that was just being made was not hidden: its stack got it only then. And one may have got a mapping at which
 * nothing is ever counted. */
static bool is_used(uint32_t site, const struct snap_counter *sum) {
    return !is_dead(sum) || site_is_of_mapping(site) || __atomic_load_n(site_of_stack(site), __ATOMIC_RELAXED) == site;
}

/* A hidden site that is in use again was in a thread's hands. From here on none is: what lives keeps its site, and what
 * is dead stays dead, but for what a thread that is at work just now may do. */
static void show_used_sites(void) {
    struct snap_counter sums[CHUNK];
    uint32_t chunk = UINT32_MAX;
    for (uint32_t site = ids_next(fold.sites, 0); site != IDS_NONE; site = ids_next(fold.sites, site + 1)) {
        if (chunk != site / CHUNK) account_sum(chunk = site / CHUNK, sums);
        if (is_used(site, &sums[site % CHUNK])) show_site(site);
    }
}

/* Of one chunk. */
static void give_away(uint32_t chunk) {
    struct snap_counter sums[CHUNK];
    uint32_t to[CHUNK] = {0}, first = chunk * CHUNK;
    account_sum(chunk, sums);
    for (uint32_t i = 0; i < CHUNK; i++) {
        if (!ids_has(fold.sites, first + i)) continue;
        if (is_dead(&sums[i]) && !ids_has(fold.pictured, first + i))
            to[i] = site_outer(snap_site_stack(site_record(first + i)));
        if (!to[i])
            show_site(first + i);
        else
            site_close(first + i);
    }
    account_move_sites(chunk, to);
    for (uint32_t i = 0; i < CHUNK; i++) {
        if (!to[i]) continue;
        ids_remove(fold.sites, first + i);
        site_free(first + i);
        fold.given++;
        ledger_lost(SNAP_LOST_FOLDED);
    }
}

static void give_sites_away(void) {
    find_pictured();
    for (uint32_t site = ids_next(fold.sites, 0); site != IDS_NONE; site = ids_next(fold.sites, site))
        give_away(site / CHUNK);
}

/* Readers of the ledger must not take the old stack of an id for its new one. */
static void finish(void) {
    if (!peak_hold()) return;
    fold.began = os_now();
    fold.given = 0;
    __atomic_fetch_add(&ledger_head->fold_sequence, 1, __ATOMIC_SEQ_CST);
    give_sites_away();
    find_nodes();
    bool given = tree_give_away(fold.nodes);
    __atomic_fetch_add(&ledger_head->fold_sequence, 1, __ATOMIC_SEQ_CST);
    peak_let_go();
    if (!given) return;
    if (fold.given >= fold.worth)
        fold.not_before = 0;
    else
        rest();
    site_forget_stacks(); /* who did without room tries again */
    ledger_note_own_memory();
    fold.stage = IDLE;
    __atomic_store_n(&fold_wanted, false, __ATOMIC_RELAXED);
}

static bool is_due(uintptr_t slot) {
    return fold.stage == IDLE ? os_now() >= fold.not_before : account_all_quiet(slot);
}

static void next_stage(void) {
    switch (fold.stage) {
    case IDLE:
        begin();
        break;
    case FIRST_WAIT:
        show_used_sites();
        account_epoch();
        fold.stage = SECOND_WAIT;
        break;
    case SECOND_WAIT:
        finish();
        break;
    }
}

/* Neither the child that a signal handler forked out of the middle of a hook, and whose ledger is still its parent's,
 * nor one of vfork, which may be killed at any time. */
void fold_step(uintptr_t slot) {
    if (ledger_is_sealed() || os_pid() != ledger_head->pid || !lock_try(&fold.busy)) return;
    if (is_due(slot)) next_stage();
    lock_let_go(&fold.busy);
}

void fold_abandon(void) {
    memset(&fold, 0, sizeof fold);
    fold_wanted = false;
}
