/* marks.c — the marks of chunks of counters: each event writes the mark of its chunk. A reader that reads only
 * chunks with a new mark gets the right counts, even while threads count. The ledger is made by the library's own
 * parts, without the hooks. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/count/account_fast.h"
#include "preload/count/counters.h"
#include "preload/count/site.h"
#include "preload/count/thread_inside.h"
#include "preload/ledger/ledger.h"
#include "tools/top/sampling.h"

enum { SITES = 1000, FIRST = 2 * SNAP_CHUNK_SITES };

static char path[64];

static void begin(void) {
    snprintf(path, sizeof path, "/tmp/memstow-marks.%d", (int)getpid());
    struct ledger_identity identity = {.path = path, .name = "marks", .exe = path, .command = "marks"};
    cr_assert(ledger_begin(&identity));
    unlink(path);
    account_begin();
    site_begin(SNAP_STACKS_NONE, UINT64_MAX, path);
    for (uint32_t i = 0; i < SITES; i++) site_new(0, i + 1, 0);
}

/* --- counters of two threads lie in different cache lines --- */

enum { LINE = 64, TURNS_EACH = 40, EVENTS_EACH = 20 };
static struct thread *both[2];
static pthread_barrier_t turn;

/* Two threads take turns. In each of its turns, a thread counts so many events at a new site that the site gets a wide
 * counter (counters.h). */
static void *make_counters(void *second) {
    for (uint32_t i = 0; i < 2 * TURNS_EACH; i++) {
        pthread_barrier_wait(&turn);
        for (int k = 0; i % 2 == (second != NULL) && k < EVENTS_EACH; k++) account_alloc(FIRST + i, 100);
    }
    both[second != NULL] = thread_self;
    pthread_barrier_wait(&turn); /* so that no thread gives up its slot before the other has its own */
    return NULL;
}

Test(marks, counters_of_two_threads_share_no_cache_line) {
    uintptr_t lines[2][TURNS_EACH];
    pthread_t threads[2];
    begin();
    cr_assert_eq(pthread_barrier_init(&turn, NULL, 2), 0);
    for (int i = 0; i < 2; i++) cr_assert_eq(pthread_create(&threads[i], NULL, make_counters, i ? both : NULL), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    cr_assert_neq(both[0], both[1]);
    for (uint32_t i = 0; i < 2 * TURNS_EACH; i++) {
        const struct snap_counter *counter = account_place(both[i % 2], FIRST + i).counter;
        cr_assert_not_null(counter);
        cr_assert_eq((uintptr_t)counter / LINE, ((uintptr_t)(counter + 1) - 1) / LINE, "a counter lies in two lines");
        lines[i % 2][i / 2] = (uintptr_t)counter / LINE;
    }
    for (int i = 0; i < TURNS_EACH; i++)
        for (int k = 0; k < TURNS_EACH; k++) cr_assert_neq(lines[0][i], lines[1][k], "counters %d and %d", i, k);
}

/* --- each kind of event writes a mark --- */

static uint64_t sum_of(const struct snap_counter *counter) {
    return counter->alloc_bytes + counter->alloc_blocks + counter->free_bytes + counter->free_blocks;
}

static uint64_t word_sum(uint64_t word) {
    struct snap_counter narrow = snap_narrow_counter(word);
    return sum_of(word & SNAP_WIDE_BIT ? (struct snap_counter *)(word ^ SNAP_WIDE_BIT) : &narrow);
}

/* The sum of the marks of all chunks of all slots, and a hash of what these chunks have counted. */
static uint64_t all_marks, all_counts;

static void look_at_all(void) {
    all_marks = all_counts = 0;
    for (uint32_t slot = 0; slot < thread_slots(); slot++)
        for (uint32_t i = 1; i <= SITES / SNAP_CHUNK_SITES; i++) {
            uint64_t *words = thread_at(slot)->chunks[i];
            all_marks += words ? *counters_mark_of(words) : 0;
            for (uint32_t k = 0; words && k < SNAP_CHUNK_SITES; k++)
                all_counts = all_counts * 31 + word_sum(words[k]) * (k + 1 + i * 1000 + slot * 100000);
        }
}

static void expect_mark(const char *what) {
    uint64_t marks = all_marks, counts = all_counts;
    look_at_all();
    cr_expect_neq(all_counts, counts, "%s: nothing was counted", what);
    cr_expect_gt(all_marks, marks, "%s: no mark", what);
}

Test(marks, each_event_writes_one) {
    begin();
    look_at_all();
    for (int i = 0; i < 40; i++) { /* narrow words, then a wide counter */
        account_alloc(FIRST + 5, 100);
        expect_mark("an allocation");
        if (i % 2) continue;
        account_free(FIRST + 5, 100);
        expect_mark("a free");
    }
    account_alloc_at(thread_self, account_place(thread_self, FIRST + 5), 100);
    expect_mark("an allocation on the fast path");
    account_free_at(thread_self, account_place(thread_self, FIRST + 5), 100);
    expect_mark("a free on the fast path");
    account_alloc(FIRST + 5, (uint64_t)5 << 32);
    expect_mark("an allocation of more than 4 GiB");
    cr_assert(account_shift(FIRST + 5, FIRST + SNAP_CHUNK_SITES, 100, 1, false));
    expect_mark("an assignment");
    account_map(FIRST + 7, 4096, 1);
    expect_mark("a mapping");
    cr_assert(account_shift_mapped(FIRST + 7, FIRST + 8, 4096, 1));
    expect_mark("an assignment of a mapping");
    account_unmap(FIRST + 8, 4096, 1);
    expect_mark("the end of a mapping");
    counters_add(&thread_nobody, FIRST + 9, 10, false);
    expect_mark("an event of a thread without a slot");
}

/* --- a reader beside threads --- */

enum { THREADS = 4, EVENTS = 60000, BLOCK = 64 };

static bool over;
/* Blocks that one thread has allocated and another one frees. */
static uint32_t passed[THREADS][64];

/* As the hooks do it. */
static void count_alloc(uint32_t site) {
    struct counters_place place = account_place(thread_self, site);
    if (!place.counter)
        account_alloc(site, BLOCK);
    else if (account_alloc_at(thread_self, place, BLOCK))
        account_flush(thread_self);
}

static void *count_events(void *argument) {
    uint32_t own = (uint32_t)(uintptr_t)argument, random = own + 1;
    for (int i = 0; i < EVENTS; i++) {
        random = random * 1664525 + 1013904223;
        uint32_t site = FIRST + (random >> 8) % (SITES - FIRST);
        count_alloc(site);
        uint32_t *place = &passed[(own + 1) % THREADS][random >> 26];
        uint32_t other = __atomic_exchange_n(place, site, __ATOMIC_ACQ_REL);
        if (other) account_free(other, BLOCK);
    }
    account_thread_end(); /* the slot is left to a later thread */
    return NULL;
}

enum { LOOKS = 20 };
static uint32_t looks; /* of the reader, while the threads count */

static void *count_in_rounds(void *argument) {
    for (int round = 0; round < 3 || os_load32(&looks) < LOOKS; round++) {
        pthread_t thread;
        cr_assert_eq(pthread_create(&thread, NULL, count_events, argument), 0);
        pthread_join(thread, NULL);
    }
    return NULL;
}

/* No site can have more live blocks than `passed` has places, plus one for each thread. */
static void expect_possible(const struct sampling *sampling) {
    uint64_t most = sizeof passed / sizeof **passed + THREADS;
    for (size_t i = FIRST; i < sampling->site_capacity; i++)
        cr_assert_leq(sampling->sites[i].host_blocks, most, "site %zu", i);
}

static void expect_same(const struct sampling *sampling) {
    uint64_t blocks = 0, left = 0;
    for (uint32_t i = FIRST; i < SITES; i++) {
        struct live live = counters_site_live(i);
        cr_assert_eq(sampling->sites[i].host_blocks, live.blocks, "site %u", i);
        cr_assert_eq(sampling->sites[i].host, live.bytes, "site %u", i);
        blocks += live.blocks;
    }
    for (size_t i = 0; i < sizeof passed / sizeof **passed; i++) left += ((uint32_t *)passed)[i] != 0;
    cr_assert_eq(blocks, left);
}

static void *wait_for_threads(void *threads) {
    for (int i = 0; i < THREADS; i++) pthread_join(((pthread_t *)threads)[i], NULL);
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    return NULL;
}

Test(marks, a_reader_misses_nothing, .timeout = 120) {
    static struct sampling sampling;
    pthread_t threads[THREADS], waits;
    char error[400];
    begin();
    for (uintptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, count_in_rounds, (void *)i), 0);
    cr_assert_eq(pthread_create(&waits, NULL, wait_for_threads, threads), 0);
    cr_assert_eq(sampling_begin(&sampling, getpid(), error, sizeof error), 0, "%s", error);
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        cr_assert_eq(sampling_look(&sampling, error, sizeof error), 0, "%s", error);
        expect_possible(&sampling);
        __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    }
    pthread_join(waits, NULL);
    cr_assert_eq(sampling_look(&sampling, error, sizeof error), 0, "%s", error);
    expect_same(&sampling);
    sampling_end(&sampling);
}
