/* counters.c — see counters.h. */
#include "preload/count/counters.h"

#include <string.h>

#include "preload/base/ids.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/series.h"
#include "preload/ledger/budget.h"
#include "preload/shared/os.h"
#include "preload/count/account_fast.h"
#include "preload/base/forked.h"

enum {
    NARROW_EVENTS = 15, /* a site with more events gets a wide counter, which is faster */
    WIDE_RUN = 16,      /* the records of a run, of which 15 are wide counters (see new_wide) */
    WIDE_FIRST_BITS = 7,
};
_Static_assert((1 << WIDE_FIRST_BITS) % WIDE_RUN == 0, "each section has whole runs, so a run begins at a multiple");
_Static_assert(sizeof(struct snap_section) == sizeof(struct snap_counter), "record 1 of a run begins a cache line");

static struct series wide = {.type = SNAP_WIDE,
                             .record_size = sizeof(struct snap_counter),
                             .first_bits = WIDE_FIRST_BITS,
                             .limit = IDS_LIMIT,
                             .anchored = true};
static struct ids *free_wide; /* NULL: no counter was ever given back */
static struct series chunks = {
    .type = SNAP_COUNTERS, .record_size = sizeof(struct snap_chunk), .first_bits = 3, .limit = 1u << 30};

static struct snap_counter *wide_of(uint64_t word) { return (struct snap_counter *)(word ^ SNAP_WIDE_BIT); }

static struct snap_counter counters_counted(uint64_t word) {
    if (!(word & SNAP_WIDE_BIT)) return snap_narrow_counter(word);
    const struct snap_counter *counter = wide_of(word);
    return (struct snap_counter){os_load(&counter->alloc_bytes), os_load(&counter->alloc_blocks),
                                 os_load(&counter->free_bytes), os_load(&counter->free_blocks)};
}

static void sum_up(struct snap_counter *sum, const struct snap_counter *more) {
    sum->alloc_bytes += more->alloc_bytes;
    sum->alloc_blocks += more->alloc_blocks;
    sum->free_bytes += more->free_bytes;
    sum->free_blocks += more->free_blocks;
}

struct snap_counter counters_of_thread(const struct thread *self, struct snap_counter sum) {
    for (uint32_t i = 0; i < self->chunk_limit; i++)
        for (int j = 0; self->chunks[i] && j < SNAP_CHUNK_SITES; j++) {
            struct snap_counter counter = counters_counted(os_load(&self->chunks[i][j]));
            sum_up(&sum, &counter);
        }
    return sum;
}

static uint64_t *make_chunk(struct thread *self, uint32_t index) {
    struct snap_chunk *chunk = series_at(&chunks, series_take(&chunks));
    uint64_t *none = NULL;
    if (!chunk) return NULL;
    chunk->index = index;
    /* First chunk_limit grows, then the chunk goes into chunks[]. In a forked child, counters_forget clears chunks[] up
     * to chunk_limit, so it misses no chunk, even if the fork came between these two steps. */
    uint32_t limit = __atomic_load_n(&self->chunk_limit, __ATOMIC_RELAXED);
    while (limit <= index && !__atomic_compare_exchange_n(&self->chunk_limit, &limit, index + 1, true, __ATOMIC_SEQ_CST,
                                                          __ATOMIC_RELAXED))
        ;
    if (!__atomic_compare_exchange_n(&self->chunks[index], &none, chunk->words, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        return none; /* another thread or a signal handler was faster */
    __atomic_store_n(&chunk->thread, self->slot + 1, __ATOMIC_RELEASE);
    return chunk->words;
}

/* Whether the slot may get a new chunk of counters. When memory is short, threads get no new chunks, but the two slots
 * that belong to no thread do. These two need little memory: each of them has at most one counter a site. */
static bool may_grow(const struct thread *self) {
    return self->slot < SNAP_THREAD_FIRST || likely(!budget_is_full(BUDGET_STACKS));
}

/* The words of the thread's chunk that has the site; NULL: there is no memory. */
static uint64_t *words_with(struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    if (index >= THREAD_CHUNKS) return NULL;
    uint64_t *words = self->chunks[index];
    if (unlikely(!words)) words = may_grow(self) ? make_chunk(self, index) : NULL;
    return words;
}

static void atomic_add(uint64_t *word, uint64_t n) { __atomic_fetch_add(word, n, __ATOMIC_RELAXED); }

/* Raises the mark of a chunk, so that readers notice an event there. Call it after the event was counted. The two slots
 * that belong to no thread may be used by several threads at once, so the addition is atomic there. */
static void mark_changed(const struct thread *self, uint64_t *words) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (self->slot < SNAP_THREAD_FIRST)
        atomic_add(counters_mark_of(words), 1);
    else
        os_add(counters_mark_of(words), 1);
}

/* The next counter of the slot's run; IDS_NONE: the run is used up. */
static uint32_t own_wide(struct thread *self) {
    uint32_t id = os_load32(&self->next_wide);
    while (id % WIDE_RUN != 0 &&
           !__atomic_compare_exchange_n(&self->next_wide, &id, id + 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    return id % WIDE_RUN ? id : IDS_NONE;
}

/* A counter that a site has given back; IDS_NONE: there is none. */
static uint32_t freed_wide(void) {
    struct ids *free = ids_known(&free_wide);
    return free ? ids_take(free, 0) : IDS_NONE;
}

/* A counter of a new run; IDS_NONE: there is no memory. The slot takes the whole run for itself, so that the counters
 * of two threads do not share a cache line. No id of `wide` is taken in another way. The first record of a run is not
 * used: it shares a cache line with the run before or with the section's header, and in the first run of a section it
 * holds the section's address (series.h). If another thread or a signal handler gives the slot a run at the same time,
 * the rest of one of both runs stays unused. */
static uint32_t new_wide(struct thread *self) {
    uint32_t first = series_take_run(&wide, WIDE_RUN);
    if (first == SERIES_NONE) return IDS_NONE;
    __atomic_store_n(&self->next_wide, first + 2, __ATOMIC_RELAXED);
    return first + 1;
}

static struct snap_counter *take_wide(struct thread *self) {
    if (!ledger_is_ours()) return NULL;
    uint32_t id = own_wide(self);
    if (id == IDS_NONE) id = freed_wide();
    if (id == IDS_NONE) id = new_wide(self);
    return id == IDS_NONE ? NULL : series_at(&wide, id);
}

static void put_wide(const struct snap_counter *counter) {
    struct ids *free = ids_made(&free_wide);
    if (free) ids_add(free, series_id(&wide, counter));
}

/* Gives the word a wide counter, unless another thread changes the word at the same time. *seen: the word as the caller
 * has read it; at the return, the word as it is now. False: there is no memory. */
static bool counters_widen(struct thread *self, uint64_t *word, uint64_t *seen) {
    struct snap_counter *counter = take_wide(self);
    if (!counter) return false;
    *counter = snap_narrow_counter(*seen);
    uint64_t now = SNAP_WIDE_BIT | (uintptr_t)counter;
    if (__atomic_compare_exchange_n(word, seen, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        *seen = now;
    else if (*seen != now) /* equal: a child, forked by a signal handler just now, has written the same */
        put_wide(counter);
    return true;
}

struct counters_place counters_wide(struct thread *self, uint32_t site) {
    uint64_t *words = words_with(self, site);
    if (!words) return (struct counters_place){NULL, NULL};
    uint64_t *word = &words[site % SNAP_CHUNK_SITES], seen = os_load(word);
    while (!(seen & SNAP_WIDE_BIT))
        if (!counters_widen(self, word, &seen)) return (struct counters_place){NULL, NULL};
    return (struct counters_place){wide_of(seen), counters_mark_of(words)};
}

/* Returns the word with one more event. SNAP_WIDE_BIT: the word cannot hold the event, so it needs a wide counter. */
static uint64_t one_more(uint64_t word, uint64_t bytes, bool freed) {
    uint32_t events = (uint32_t)(word >> 32 & 0xFFFF) + (uint32_t)(word >> 48);
    if (bytes > UINT32_MAX || events >= NARROW_EVENTS || (word && (uint32_t)word != bytes)) return SNAP_WIDE_BIT;
    return (word | bytes) + snap_narrow(0, !freed, freed);
}

static void count_wide(struct snap_counter *counter, uint64_t bytes, bool freed) {
    atomic_add(freed ? &counter->free_bytes : &counter->alloc_bytes, bytes);
    atomic_add(freed ? &counter->free_blocks : &counter->alloc_blocks, 1);
}

/* Counts an event in a word. False: there is no memory for a wide counter. */
static bool count_in_word(struct thread *self, uint64_t *word, uint64_t bytes, bool freed) {
    uint64_t seen = os_load(word);
    while (!(seen & SNAP_WIDE_BIT)) {
        uint64_t sum = one_more(seen, bytes, freed);
        if (sum == SNAP_WIDE_BIT) {
            if (!counters_widen(self, word, &seen)) return false;
        } else if (__atomic_compare_exchange_n(word, &seen, sum, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE)) {
            return true;
        }
    }
    count_wide(wide_of(seen), bytes, freed);
    return true;
}

/* Counts an event in this slot. False: there is no memory for its counter. */
static bool count_in(struct thread *self, uint32_t site, uint64_t bytes, bool freed) {
    uint64_t *words = words_with(self, site);
    if (!words || !count_in_word(self, &words[site % SNAP_CHUNK_SITES], bytes, freed)) return false;
    mark_changed(self, words);
    return true;
}

/* Counts an event at SNAP_SITE_UNKNOWN, in the counter that counters_begin made in the shared slot; without that
 * counter, the event is not counted. Returns SNAP_SITE_UNKNOWN. */
static uint32_t count_unknown(uint64_t bytes, bool freed) {
    ledger_lost(SNAP_LOST_SITES);
    struct snap_counter *counter = account_place(thread_at(SNAP_THREAD_SHARED), SNAP_SITE_UNKNOWN).counter;
    if (counter) count_wide(counter, bytes, freed);
    return SNAP_SITE_UNKNOWN;
}

/* A thread without memory for a counter counts in the shared slot. */
uint32_t counters_add(struct thread *self, uint32_t site, uint64_t bytes, bool freed) {
    if (likely(self != &thread_nobody && count_in(self, site, bytes, freed))) return site;
    return count_in(thread_at(SNAP_THREAD_SHARED), site, bytes, freed) ? site : count_unknown(bytes, freed);
}

/* --- sums over all slots, and counts that move to other sites --- */

uint64_t counters_bytes(void) {
    return os_load(&chunks.next) * sizeof(struct snap_chunk) + os_load(&wide.next) * sizeof(struct snap_counter);
}

static struct snap_counter sum_of_site(uint32_t site) {
    struct snap_counter sum = {0};
    for (uint32_t slot = 0; slot < thread_slots(); slot++) {
        const struct thread *thread = thread_at(slot);
        const uint64_t *words = thread ? thread->chunks[site / SNAP_CHUNK_SITES] : NULL;
        if (!words) continue;
        struct snap_counter counter = counters_counted(os_load(&words[site % SNAP_CHUNK_SITES]));
        sum_up(&sum, &counter);
    }
    return sum;
}

/* Sums the frees, the allocations, and the frees again. Repeats this a few times, until both sums of frees are equal.
 * Otherwise the result could contain blocks that never lived at the same time. */
struct live counters_site_live(uint32_t site) {
    enum { TRIES = 3 };
    struct snap_counter freed, made, again;
    for (int i = 0; i < TRIES; i++) {
        freed = sum_of_site(site);
        made = sum_of_site(site);
        again = sum_of_site(site);
        if (freed.free_bytes == again.free_bytes && freed.free_blocks == again.free_blocks) break;
    }
    if (made.alloc_bytes < again.free_bytes || made.alloc_blocks < again.free_blocks) return (struct live){0};
    return (struct live){made.alloc_bytes - again.free_bytes, made.alloc_blocks - again.free_blocks};
}

void counters_sum(uint32_t chunk, struct snap_counter sums[SNAP_CHUNK_SITES]) {
    memset(sums, 0, SNAP_CHUNK_SITES * sizeof *sums);
    for (int frees = 1; frees >= 0; frees--)
        for (uint32_t slot = 0; slot < thread_slots(); slot++) {
            const struct thread *thread = thread_at(slot);
            const uint64_t *words = thread ? thread->chunks[chunk] : NULL;
            for (int i = 0; words && i < SNAP_CHUNK_SITES; i++) {
                struct snap_counter counter = counters_counted(os_load(&words[i]));
                sums[i].free_bytes += frees ? counter.free_bytes : 0;
                sums[i].free_blocks += frees ? counter.free_blocks : 0;
                sums[i].alloc_bytes += frees ? 0 : counter.alloc_bytes;
                sums[i].alloc_blocks += frees ? 0 : counter.alloc_blocks;
            }
        }
}

static void add_counter(struct snap_counter *to, const struct snap_counter *from) {
    /* Frees come first: if the process is killed in between, no dead block looks live. */
    atomic_add(&to->free_bytes, from->free_bytes);
    atomic_add(&to->free_blocks, from->free_blocks);
    atomic_add(&to->alloc_bytes, from->alloc_bytes);
    atomic_add(&to->alloc_blocks, from->alloc_blocks);
}

/* Takes the counts of the sites that move (to[i] is not 0) out of one slot's words. Adds them to `sums`, and to the
 * total in the slot's record. */
static void take_out(uint32_t slot, uint64_t *words, const uint32_t to[SNAP_CHUNK_SITES],
                     struct snap_counter sums[SNAP_CHUNK_SITES]) {
    struct snap_thread *record = thread_record(slot);
    struct snap_counter taken = {0};
    for (int i = 0; i < SNAP_CHUNK_SITES; i++) {
        uint64_t word = to[i] ? os_load(&words[i]) : 0;
        if (!word) continue;
        struct snap_counter counter = counters_counted(word);
        sum_up(&sums[i], &counter);
        sum_up(&taken, &counter);
        __atomic_store_n(&words[i], 0, __ATOMIC_RELEASE);
        if (word & SNAP_WIDE_BIT) put_wide(wide_of(word));
    }
    if (record) add_counter(&record->total, &taken);
}

/* The shared slot's counter of a site. If there is no memory for it: the shared slot's counter of SNAP_SITE_UNKNOWN. */
static struct snap_counter *shared_counter(uint32_t site) {
    struct snap_counter *counter = counters_wide(thread_at(SNAP_THREAD_SHARED), site).counter;
    if (counter) return counter;
    ledger_lost(SNAP_LOST_SITES);
    return account_place(thread_at(SNAP_THREAD_SHARED), SNAP_SITE_UNKNOWN).counter;
}

/* The counts of all slots move into the shared slot. Only one thread at a time may call this function. `sums` is
 * static, because that thread's stack may be too small for it. No marks are needed, because readers see that a fold
 * happened. */
void counters_move(uint32_t chunk, const uint32_t to[SNAP_CHUNK_SITES]) {
    static struct snap_counter sums[SNAP_CHUNK_SITES];
    memset(sums, 0, sizeof sums);
    struct snap_thread *record = thread_record(SNAP_THREAD_SHARED);
    for (uint32_t slot = 0; slot < thread_slots(); slot++) {
        const struct thread *thread = thread_at(slot);
        if (thread && thread->chunks[chunk]) take_out(slot, thread->chunks[chunk], to, sums);
    }
    struct snap_counter moved = {0};
    for (int i = 0; i < SNAP_CHUNK_SITES; i++) {
        struct snap_counter *into = to[i] ? shared_counter(to[i]) : NULL;
        if (!into) continue;
        add_counter(into, &sums[i]);
        sum_up(&moved, &sums[i]);
    }
    const struct snap_counter less = {-moved.alloc_bytes, -moved.alloc_blocks, -moved.free_bytes, -moved.free_blocks};
    if (record) add_counter(&record->total, &less);
}

/* Makes the counters of SNAP_SITE_UNKNOWN now, so that events can count there when there is no memory. */
void counters_begin(void) {
    counters_wide(thread_at(SNAP_THREAD_SHARED), SNAP_SITE_UNKNOWN);
    counters_wide(thread_at(SNAP_THREAD_MAPPINGS), SNAP_SITE_UNKNOWN);
}

void counters_forget(struct thread *self) {
    memset(self->chunks, 0, self->chunk_limit * sizeof *self->chunks);
    self->chunk_limit = 0;
    self->next_wide = 0;
}

static void counters_abandon(void) {
    series_reset(&chunks);
    series_reset(&wide);
    free_wide = NULL;
}
FORKED(counters_abandon);
