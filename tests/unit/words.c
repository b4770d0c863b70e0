// The table of words: words that were put in are found, and words that were taken out are not found. This also holds
// while another thread puts words in. The table does not grow if as many words are taken out as put in.
#include <criterion/criterion.h>
#include <pthread.h>

#include "preload/base/arena.h"
#include "preload/base/words.h"

static uint64_t word(uint64_t n) { return (n + 2) * 0x9E3779B97F4A7C15u | 2; }

Test(words, are_found_by_their_numbers) {
    static struct words words;
    cr_assert_eq(words_find(&words, 2), WORDS_NONE);
    for (uint32_t i = 0; i < 100000; i++) cr_assert(words_put(&words, word(i), i));
    for (uint32_t i = 0; i < 100000; i++) cr_assert_eq(words_find(&words, word(i)), i);
    cr_assert_eq(words_find(&words, word(100000)), WORDS_NONE);
    words_clear(&words);
    for (uint32_t i = 0; i < 100000; i++) cr_assert_eq(words_find(&words, word(i)), WORDS_NONE);
}

static size_t arena_bytes(void) {
    struct snap_range ranges[ARENA_RANGES];
    size_t bytes = 0;
    for (uint32_t n = arena_ranges(ranges); n-- > 0;) bytes += ranges[n].length;
    return bytes;
}

/* As in a program that compiles code for ever, words are put in all the time, and each is taken out after a while. */
Test(words, churn_takes_no_memory) {
    static struct words words;
    size_t settled = 0;
    for (uint32_t i = 0; i < 3000000; i++) {
        cr_assert(words_put(&words, word(i), i));
        if (i >= 500) cr_assert(words_take_out(&words, word(i - 500)));
        if (i == 100000) settled = arena_bytes();
    }
    cr_assert_eq(arena_bytes(), settled);
    for (uint32_t i = 3000000 - 500; i < 3000000; i++) cr_assert_eq(words_find(&words, word(i)), i);
    for (uint32_t i = 0; i < 3000000 - 500; i += 7) cr_assert_eq(words_find(&words, word(i)), WORDS_NONE);
    cr_assert_not(words_take_out(&words, word(1)));
}

/* One thread inserts words, so that the table grows and is swept. Other threads remove words, and look up words that
 * stay. */
enum { GO = 200000 };
static struct words shared;
static uint32_t put_so_far;

static void *take_out(void *unused) {
    (void)unused;
    for (uint32_t i = 0; i < GO; i++) {
        while (__atomic_load_n(&put_so_far, __ATOMIC_ACQUIRE) <= i)
            ;
        if (i % 16 && !words_take_out(&shared, word(i))) return &shared;
    }
    return NULL;
}

static void *look(void *unused) {
    (void)unused;
    while (__atomic_load_n(&put_so_far, __ATOMIC_ACQUIRE) < GO)
        for (uint32_t i = 0, n = __atomic_load_n(&put_so_far, __ATOMIC_ACQUIRE); i < n; i += 16 * 101)
            if (words_find(&shared, word(i)) != i) return &shared;
    return NULL;
}

Test(words, threads_take_out_while_it_grows) {
    pthread_t threads[2];
    void *failed;
    pthread_create(&threads[0], NULL, take_out, NULL);
    pthread_create(&threads[1], NULL, look, NULL);
    for (uint32_t i = 0; i < GO; i++) {
        cr_assert(words_put(&shared, word(i), i));
        __atomic_store_n(&put_so_far, i + 1, __ATOMIC_RELEASE);
    }
    for (int t = 0; t < 2; t++) {
        pthread_join(threads[t], &failed);
        cr_assert_null(failed, "thread %d", t);
    }
    for (uint32_t i = 0; i < GO; i++) cr_assert_eq(words_find(&shared, word(i)), i % 16 ? WORDS_NONE : i, "%u", i);
}

/* Returns a different word for each k. In a table of 1,024 slots, all these words begin their search at the same
 * slot, because this function is the inverse of the hash in first_slot (words.c). */
static uint64_t at_one_slot(uint64_t k) {
    uint64_t mixed = k * 0xF1DE83E19937733D;
    return mixed ^ mixed >> 32;
}

static struct words churned;
static uint64_t current;
static bool over;

static void *replaces(void *unused) {
    for (uint64_t k = 2; !__atomic_load_n(&over, __ATOMIC_RELAXED); k++) {
        words_take_out(&churned, at_one_slot(k - 1));
        words_put(&churned, at_one_slot(k), (uint32_t)k);
        __atomic_store_n(&current, k, __ATOMIC_RELEASE);
    }
    return unused;
}

Test(words, number_is_never_that_of_the_next_word_at_the_place) {
    pthread_t thread;
    cr_assert(words_put(&churned, at_one_slot(1), 1));
    current = 1;
    pthread_create(&thread, NULL, replaces, NULL);
    for (int i = 0; i < 20000000; i++) {
        uint64_t k = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
        uint32_t found = words_find(&churned, at_one_slot(k));
        if (found != WORDS_NONE) cr_assert_eq(found, (uint32_t)k);
    }
    __atomic_store_n(&over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}
