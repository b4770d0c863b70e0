/* tags.c — see tags.h. A tag is three owner ids of 20 bits in one word. words.h finds its number by that word. */
#include "preload/count/tags.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/base/lock.h"
#include "preload/count/owner.h"
#include "preload/count/site.h"
#include "preload/base/words.h"
#include "preload/stacks/generation.h"
#include "preload/count/thread_inside.h"
#include "preload/base/forked.h"

enum { KNOWN_BITS = 12 };

/* The tagged sites that a thread used most recently, by the hash of untagged site and tag. One word holds the untagged
 * site, the tag, and the tagged site. So a signal handler never sees or leaves half an entry. */
struct tagged {
    uint32_t generation; /* the entries are valid for this generation_of_stacks */
    uint64_t known[1 << KNOWN_BITS];
};
enum { SITE_BITS = 21 };
_Static_assert(SITE_LIMIT <= 1 << SITE_BITS, "two sites and a tag fit a word");

bool tags_used;
uint32_t tags_epoch = 1;
static struct heap *no_heap(uint32_t owner) { return (void)owner, NULL; }
struct heap *(*tags_heap_of)(uint32_t owner) = no_heap;
__thread struct scopes tags_scopes __attribute__((tls_model("initial-exec")));
__thread uint32_t tags_loads __attribute__((tls_model("initial-exec")));

static uint32_t run_on, first_of_run; /* run_on: the present run; first_of_run: the first tag that was made for it */
static struct words numbers;
static struct lock making;
static struct series tags = {
    .type = SNAP_TAG, .record_size = sizeof(struct snap_tag), .first_bits = 6, .limit = 1 << SNAP_SITE_TAG_BITS};

void tags_use(void) { __atomic_store_n(&tags_used, true, __ATOMIC_SEQ_CST); }

/* The step is 2, so the epoch stays odd and is never 0. */
void tags_change(void) { __atomic_fetch_add(&tags_epoch, 2, __ATOMIC_SEQ_CST); }

uint32_t tags_run(void) { return __atomic_load_n(&run_on, __ATOMIC_ACQUIRE); }

/* --- tags and their numbers --- */

struct snap_tag tags_at(uint32_t number) {
    const struct snap_tag *tag = number < os_load(&tags.next) ? series_at(&tags, number) : NULL;
    return tag ? *tag : (struct snap_tag){0};
}

uint32_t tags_count(void) { return (uint32_t)os_load(&tags.next); }

/* A tag as one word for words.h, which reserves the words 0 and 1. No tag has the word 1, because the lowest bit is
 * always 0. Only the tag without owners has the word 0, and that tag is never looked up. */
static uint64_t word_of(struct snap_tag tag) {
    return ((uint64_t)tag.model | (uint64_t)tag.node << 20 | (uint64_t)tag.run << 40) << 1;
}

/* The number of the tag with this word. Other threads may change the table meanwhile, so words_find may return another
 * tag's number. A tag's record never changes, so it shows whether the number is the right one. */
static uint32_t find_tag(uint64_t word) {
    uint32_t number = words_find(&numbers, word);
    return likely(number == WORDS_NONE || word_of(tags_at(number)) == word) ? number : WORDS_NONE;
}

/* Makes a tag and its number. The number is the id of the record, so the record is written before the number can be
 * found. */
static uint32_t tags_make(struct snap_tag tag) {
    uint32_t number = find_tag(word_of(tag));
    if (number != WORDS_NONE) return number;
    number = series_take(&tags);
    struct snap_tag *record = series_at(&tags, number);
    if (!record) return 0;
    *record = tag;
    return words_put(&numbers, word_of(tag), number) ? number : 0;
}

uint32_t tags_number(struct snap_tag tag) {
    if (!word_of(tag)) return 0;
    uint32_t number = find_tag(word_of(tag));
    if (likely(number != WORDS_NONE)) return number;
    owner_note(tag);
    number = 0;
    if (lock_wait(&making)) {
        number = tags_make(tag);
        lock_let_go(&making);
    }
    if (!number) ledger_lost(SNAP_LOST_TAGS);
    return number;
}

/* --- the present run begins and ends --- */

/* Forgets the numbers of the tags of a run that has ended: nothing new is counted under them. If such a tag is looked
 * up after all, it gets another number with the same meaning. */
static void forget_numbers(uint32_t run, uint32_t first) {
    if (!lock_wait(&making)) return;
    for (uint32_t number = first, end = tags_count(); number < end; number++) {
        struct snap_tag tag = tags_at(number);
        if (tag.run == run) words_take_out(&numbers, word_of(tag));
    }
    lock_let_go(&making);
}

void tags_set_run(uint32_t run) {
    uint32_t before = tags_run(), first = first_of_run;
    if (run) first_of_run = tags_count();
    __atomic_store_n(&run_on, run, __ATOMIC_RELEASE);
    tags_change();
    if (!run) forget_numbers(before, first);
}

/* --- the tag of the calling thread --- */

static void work_out(struct scopes *self) {
    struct snap_tag tag = {.run = tags_run()};
    for (uint32_t i = self->count; i-- > 0 && !(tag.model && tag.node);) {
        uint32_t owner = self->owners[i], *part = owner_kind(owner) == MEMSTOW_NODE ? &tag.node : &tag.model;
        if (!*part) *part = owner;
    }
    self->model = tag.model = owner_final(tag.model);
    self->heap = tags_heap_of(tag.model);
    self->tag = tags_number(tag);
}

/* Works out the thread's tag from its open scopes. If a signal handler opened or left scopes meanwhile, this is done
 * again, because half of the result could come from the handler's scopes. */
void tags_refresh(void) {
    enum { AT_WORK = 2 }; /* even, so it is no epoch: epochs are odd */
    struct scopes *self = &tags_scopes;
    uint32_t epoch, seen;
    do {
        epoch = __atomic_load_n(&tags_epoch, __ATOMIC_ACQUIRE);
        __atomic_store_n(&self->epoch, seen = AT_WORK, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        work_out(self);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (!__atomic_compare_exchange_n(&self->epoch, &seen, epoch, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

void tags_end_thread(void) {
    struct scopes *self = &tags_scopes;
    while (self->count) owner_scope(self->owners[--self->count], -1);
    self->epoch = 0;
    tags_loads = 0;
}

static struct tagged *known_of(struct thread *self) {
    if (unlikely(!self->tagged) && self != &thread_nobody) self->tagged = arena_take(sizeof *self->tagged);
    return self->tagged;
}

static void tags_forget(struct tagged *self, uint32_t generation) {
    memset(self->known, 0, sizeof self->known);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->generation = generation;
}

uint32_t tags_site(uint32_t site) {
    uint32_t tag = tags_present()->tag, generation = __atomic_load_n(&generation_of_stacks, __ATOMIC_ACQUIRE);
    if (!tag) return site;
    struct tagged *self = known_of(thread_self);
    if (unlikely(!self)) return site_tagged(site, tag);
    if (unlikely(self->generation != generation)) tags_forget(self, generation);
    uint64_t key = site | (uint64_t)tag << SITE_BITS;
    uint64_t *known = &self->known[key * 0x9E3779B97F4A7C15u >> (64 - KNOWN_BITS)], seen = os_load(known);
    if (likely(seen >> SITE_BITS == key)) return seen & ((1u << SITE_BITS) - 1);
    uint32_t found = site_tagged(site, tag);
    os_store(known, key << SITE_BITS | found);
    return found;
}

void tags_begin(void) {
    struct snap_tag *untagged = series_at(&tags, series_take(&tags));
    if (untagged) *untagged = (struct snap_tag){0};
}

static void tags_abandon(void) {
    series_reset(&tags);
    words_clear(&numbers);
    making = (struct lock){0};
    first_of_run = 0;
    tags_change();
}
FORKED(tags_abandon);
