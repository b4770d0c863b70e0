/* site.c — see site.h. A place is the id of a frame in the tree of call stacks, and also the id of the stack that ends
 * with this frame. A run of frames is a row of places that are stored together (tree.h). */
#include "preload/count/site.h"

#include <string.h>

#include "preload/count/counters.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/ledger/budget.h"
#include "preload/stacks/module.h"
#include "preload/count/pin.h"
#include "preload/base/lock.h"
#include "preload/stacks/rule.h"
#include "preload/stacks/tree.h"
#include "preload/base/forked.h"

static struct series sites = {
    .type = SNAP_SITE, .record_size = sizeof(struct snap_site), .first_bits = 9, .limit = SITE_LIMIT};
static struct ids *free_sites;   /* NULL: no site was ever given back */
static struct ids mapping_sites; /* the sites that stay: fold.c does not take their ids */

static bool tagged_equal(uint32_t site, const void *key);
static uint32_t tagged_hash(uint32_t site);
static const void *tagged_record(uint32_t site);
/* The sites with a tag, found by tag and stack. */
static struct index tagged = {
    .equal = tagged_equal, .hash = tagged_hash, .record = tagged_record, .may_grow = budget_has};
static bool tagged_ready; /* `tagged` has a table */
static struct lock readying;

static uint32_t new_id(void) {
    struct ids *free = ids_known(&free_sites);
    uint32_t id = free && ledger_is_ours() ? ids_take(free, SNAP_SITE_FIRST) : IDS_NONE;
    bool few = id == IDS_NONE || budget_is_short(ids_count(free), os_load(&sites.next));
    if (few && budget_is_full(BUDGET_SOON)) budget_want();
    return id == IDS_NONE ? series_take(&sites) : id;
}

uint32_t site_new(uint32_t tag, uint32_t stack, uint32_t module) {
    uint32_t id = new_id();
    struct snap_site *site = series_at(&sites, id);
    if (!site) {
        ledger_lost(SNAP_LOST_SITES);
        return SNAP_SITE_UNKNOWN;
    }
    __atomic_store_n(&site->word, snap_site(tag, stack, module).word, __ATOMIC_RELEASE);
    return id;
}

struct snap_site site_record(uint32_t site) {
    const struct snap_site *record = series_at(&sites, site);
    return (struct snap_site){record ? os_load(&record->word) : 0};
}

void site_close(uint32_t site) {
    struct snap_site *record = series_at(&sites, site);
    __atomic_store_n(&record->word, SNAP_SITE_FREE, __ATOMIC_SEQ_CST);
}

bool site_make_ready(void) { return ids_made(&free_sites) != NULL; }

void site_free(uint32_t first, uint64_t bits) { ids_add_word(free_sites, first / 64, bits); }

uint64_t site_free_count(void) {
    const struct ids *free = ids_known(&free_sites);
    return free ? ids_count(free) : 0;
}

static struct budget_use site_use(void) {
    uint64_t frames = rule_bytes();
    uint64_t count = os_load(&sites.next), of_table = count * sizeof(struct snap_site) + index_bytes(&tagged);
    uint64_t of_sites = count * BUDGET_IDS / SITE_LIMIT, of_tree = tree_ids();
    return (struct budget_use){tree_bytes() + frames + counters_bytes() + of_table, frames,
                               of_sites > of_tree ? of_sites : of_tree};
}

/* The module that the code at an address belongs to. In most cases the unwinder has already stored a rule for the
 * address (rule.h). The frame of the rule names the module, which saves a search. */
static uint32_t module_of_code(uintptr_t address) {
    struct rule rule = rule_of(address);
    return rule.frame == RULE_NO_FRAME ? module_at(address) : rule_frame(rule.frame)->module;
}

static uint32_t make_site(uint32_t stack, uint32_t module) {
    uint32_t *known = tree_site(stack), none = 0, site = site_new(0, stack, module);
    if (site == SNAP_SITE_UNKNOWN) return site;
    if (__atomic_compare_exchange_n(known, &none, site, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return site;
    /* Another thread was faster, and the stack has its site. Ours stays until a fold finds it unused, and frees it. */
    return none;
}

/* The module of the frame at a place in the tree. The frame's code may be unloaded by now. 0: the frame is Python
 * code. */
static uint32_t module_of(uint32_t place) {
    const struct snap_frame *frame = rule_frame(tree_frame(place));
    return frame && !(frame->code & ~SNAP_FRAME_INTERRUPTED) ? frame->module : 0;
}

static uint32_t site_at(uint32_t place) {
    uint32_t stack = tree_stack_known(place);
    return stack == TREE_NONE ? 0 : __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
}

static uint32_t make_outer(uint32_t place) {
    uint32_t stack = tree_stack(place);
    if (stack == TREE_NONE) stack = place = TREE_ROOT;
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    return site ? site : make_site(stack, module_of(place));
}

/* The site of a place in the tree. If the place has none: the nearest outer site in the same run of frames. 0: there is
 * none. */
static uint32_t site_in_run(uint32_t place) {
    uint32_t site = 0;
    for (uint32_t first = tree_first(place); !site && place >= first; place--) site = site_at(place);
    return site;
}

/* Many searches take the same path, so `found` remembers the result for the places on it. */
uint32_t site_outer(uint32_t place, struct site_outer_found *found) {
    enum { PATH = 16 };
    uint32_t path[PATH], length = 0, outermost = TREE_ROOT, site = 0;
    for (; place != TREE_ROOT && !site; place = tree_outside(place)) {
        uint32_t i = place % SITE_OUTER_FOUND;
        site = found && found->at[i].place == place ? found->at[i].site : site_in_run(place);
        if (length < PATH) path[length++] = place;
        outermost = place;
    }
    if (!site) site = make_outer(outermost == TREE_ROOT ? TREE_ROOT : tree_first(outermost));
    for (uint32_t i = 0; found && i < length; i++) {
        found->at[path[i] % SITE_OUTER_FOUND].place = path[i];
        found->at[path[i] % SITE_OUTER_FOUND].site = site;
    }
    return site;
}

/* The site of an untagged stack (tree.h) whose innermost call is at `address`. */
static uint32_t site_for_stack(uint32_t stack, uintptr_t address) {
    budget_note_losses();
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    if (likely(site)) return site;
    if (likely(site_free_count() || !budget_is_full(BUDGET_STACKS))) return make_site(stack, module_of_code(address));
    budget_want();
    ledger_lost(SNAP_LOST_STACKS);
    return site_outer(stack, NULL);
}

/* --- sites with a tag --- */

enum { KEY_BITS = SNAP_SITE_TAG_BITS + SNAP_SITE_STACK_BITS };

/* Tag and stack of a site. The module is left out: it follows from the stack. */
static uint64_t key_in(uint64_t word) { return word & (((uint64_t)1 << KEY_BITS) - 1); }
static uint32_t hash_of_key(uint64_t key) { return (uint32_t)((key ^ key >> 32) * 0x9E3779B97F4A7C15u >> 32); }

static bool tagged_equal(uint32_t site, const void *key) {
    return key_in(site_record(site).word) == *(const uint64_t *)key;
}
static uint32_t tagged_hash(uint32_t site) { return hash_of_key(key_in(site_record(site).word)); }
static const void *tagged_record(uint32_t site) { return series_at(&sites, site); }

static bool make_tagged_ready(void) {
    if (likely(__atomic_load_n(&tagged_ready, __ATOMIC_ACQUIRE))) return true;
    if (!lock_wait(&readying)) return false;
    if (!tagged_ready) __atomic_store_n(&tagged_ready, index_begin(&tagged), __ATOMIC_RELEASE);
    lock_let_go(&readying);
    return tagged_ready;
}

/* If two threads make the same site at once, one of the two sites is never used. fold.c finds that site empty, and
 * frees it. */
static uint32_t find_tagged(uint32_t tag, uint32_t stack, uint32_t module, bool make) {
    uint64_t key = snap_site(tag, stack, 0).word;
    uint32_t site = index_find(&tagged, hash_of_key(key), &key);
    if (site != INDEX_NONE || !make) return site;
    site = site_new(tag, stack, module);
    if (tags_at(tag).run) budget_note_run_site();
    return site == SNAP_SITE_UNKNOWN ? INDEX_NONE : index_insert(&tagged, hash_of_key(key), &key, site);
}

/* If there is no memory for a site with this stack, the block counts at a site without a stack, so that it still counts
 * for its owner. */
uint32_t site_tagged(uint32_t site, uint32_t tag) {
    struct snap_site record = site_record(site);
    uint32_t stack = snap_site_stack(record), found = INDEX_NONE;
    if (!make_tagged_ready()) return site;
    if (record.word != SNAP_SITE_FREE) {
        bool has_memory = site_free_count() || !budget_is_full(BUDGET_STACKS);
        found = find_tagged(tag, stack, snap_site_module(record), has_memory);
        if (found == INDEX_NONE && !has_memory) {
            budget_want();
            ledger_lost(SNAP_LOST_STACKS);
        }
    }
    if (found == INDEX_NONE) found = find_tagged(tag, TREE_ROOT, 0, true);
    return found == INDEX_NONE ? site : found;
}

static uint32_t site_untagged(struct snap_site record) {
    uint32_t stack = snap_site_stack(record);
    if (sample_here && !stack) return sample_here;
    uint32_t site = __atomic_load_n(tree_site(stack), __ATOMIC_RELAXED);
    return site ? site : make_site(stack, snap_site_module(record));
}

static bool is_under(uint32_t site, struct snap_tag tag) {
    struct snap_tag has = tags_at(snap_site_tag(site_record(site)));
    return has.model == tag.model && has.node == tag.node && has.run == tag.run;
}

/* A second call with the same arguments may give another site, because fold.c may have hidden the first one from
 * look-ups meanwhile. */
bool site_of_model(uint32_t site, uint32_t model, uint32_t *other) {
    struct snap_site record = site_record(site);
    struct snap_tag tag = tags_at(snap_site_tag(record));
    tag.model = model;
    uint32_t number = tags_number(tag);
    *other = number ? site_tagged(site, number) : site_untagged(record);
    if (!is_under(*other, tag)) return false; /* no memory for the tag, or for a site with it */
    if (site_is_of_mapping(site)) ids_add(&mapping_sites, *other);
    return true;
}

uint32_t site_known_tagged(struct snap_site record) {
    uint64_t key = key_in(record.word);
    uint32_t site = tagged_ready ? index_find(&tagged, hash_of_key(key), &key) : INDEX_NONE;
    return site == INDEX_NONE ? 0 : site;
}

void site_show_tagged(uint32_t site) {
    uint64_t key = key_in(site_record(site).word);
    index_insert(&tagged, hash_of_key(key), &key, site);
}

bool site_hide_tagged(const struct ids *stay, struct ids *hidden, struct index_walk *walk) {
    if (!tagged_ready) return true;
    if (!index_hold(&tagged)) return false;
    bool done = index_prune(&tagged, stay, hidden, walk);
    index_let_go(&tagged);
    return done;
}

/* A record of a mapping may refer to its site although nothing is counted there (reserved and file mappings). So the
 * site stays. */
static uint32_t site_that_stays(struct caller caller, bool tagged_too) {
    enum pin pin = pin_begin(caller.slot);
    bool here = sample_here && !sample_bytes;
    uint32_t site = here ? sample_here : stack_site(caller.slot, caller.address, caller.rbp);
    if (unlikely(tags_used && tagged_too)) site = tags_site(site);
    ids_add(&mapping_sites, site);
    pin_end(pin);
    return site;
}

uint32_t site_of_mapping(struct caller caller) { return site_that_stays(caller, true); }

uint32_t site_of_call(struct caller caller) { return site_that_stays(caller, false); }

uint32_t site_of_address(uintptr_t address) {
    enum pin pin = pin_begin(CALLER.slot);
    uint32_t site = sample_here && !sample_bytes ? sample_here : stack_site_of_address(address);
    ids_add(&mapping_sites, site);
    pin_end(pin);
    return site;
}

void site_keep(uint32_t site) { ids_add(&mapping_sites, site); }

uintptr_t site_caller(uint32_t site, bool (*skip)(const void *address)) {
    uintptr_t innermost = 0;
    for (uint32_t place = snap_site_stack(site_record(site)); place != TREE_ROOT; place = tree_outer(place)) {
        const struct snap_frame *frame = tree_frame(place) == SNAP_RUN_FRAME ? NULL : rule_frame(tree_frame(place));
        if (!frame || frame->code & ~SNAP_FRAME_INTERRUPTED) continue;
        if (!innermost) innermost = frame->address;
        if (!skip((const void *)frame->address)) return frame->address;
    }
    return innermost;
}

bool site_is_of_mapping(uint32_t site) { return ids_has(&mapping_sites, site); }

uint32_t site_count(void) { return (uint32_t)os_load(&sites.next); }

bool site_begin(uint32_t stacks, uint64_t memory, const char *program) {
    budget_begin(memory, site_use);
    module_begin(program);
    stack_site_of = site_for_stack;
    tags_begin();
    for (int fixed = 0; fixed < SNAP_SITE_FIRST; fixed++)
        site_new(0, 0, 0); /* SNAP_SITE_UNKNOWN, SNAP_SITE_INHERITED */
    bool recorded = stacks != SNAP_STACKS_NONE && tree_begin() && rule_begin();
    if (!recorded) sample_bytes = 0;
    sample_here = recorded && !sample_bytes ? 0 : site_new(0, 0, 0); /* SNAP_SITE_NOT_SAMPLED */
    return recorded;
}

static void site_abandon(void) {
    index_reset(&tagged);
    tagged_ready = false;
    readying = (struct lock){0};
    series_reset(&sites);
    free_sites = NULL;
    ids_clear(&mapping_sites);
}
FORKED(site_abandon);
