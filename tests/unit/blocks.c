// The table of blocks that are found by address is compared with a naive model, and used by several threads at once.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>

#include "preload/blocks/blocks.h"
#include "preload/ledger/ledger.h"

static void begin(void) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    blocks_open_ledger();
}

static struct block some_block(uint32_t n) { return (struct block){.size = n * 7 + 1, .site = n, .mark = n ^ 5}; }

static bool equal(const struct block *a, const struct block *b) {
    return a->size == b->size && a->site == b->site && a->mark == b->mark;
}

Test(blocks, added_found_taken_gone, .init = begin) {
    struct block in = some_block(3), out;
    cr_assert_not(blocks_find(0x7000, &out));
    cr_assert(blocks_add(0x7000, &in, 1));
    cr_assert(blocks_find(0x7000, &out) && equal(&in, &out));
    cr_assert(blocks_find(0x7000, &out), "a look-up leaves it there");
    cr_assert(blocks_take(0x7000, &out) && equal(&in, &out));
    cr_assert_not(blocks_take(0x7000, &out));
    cr_assert_not(blocks_find(0x7000, &out));
}

/* The model has for each address the number of the block there, or 0. Addresses are some pages apart, as in reality, so
 * that hashing must handle them. */
static void random_operations(uintptr_t base, uintptr_t step, unsigned seed) {
    enum { ADDRESSES = 20000, OPERATIONS = 300000 };
    static uint32_t model[ADDRESSES];
    memset(model, 0, sizeof model);
    for (uint32_t i = 1; i <= OPERATIONS; i++) {
        uint32_t n = (uint32_t)rand_r(&seed) % ADDRESSES;
        uintptr_t address = base + n * step;
        struct block out, want = some_block(model[n]);
        if (rand_r(&seed) % 3 == 0) {
            cr_assert_eq(blocks_find(address, &out), model[n] != 0);
        } else if (model[n]) {
            cr_assert(blocks_take(address, &out));
            model[n] = 0;
        } else {
            struct block in = some_block(i);
            cr_assert(blocks_add(address, &in, i % 9));
            model[n] = i;
            continue;
        }
        cr_assert(want.site == 0 || equal(&out, &want));
    }
    for (uint32_t n = 0; n < ADDRESSES; n++) {
        struct block out;
        cr_assert_eq(blocks_take(base + n * step, &out), model[n] != 0);
    }
}

Test(blocks, random_pages, .init = begin) { random_operations(0x7f0000000000, 4096, 1); }
Test(blocks, random_large_blocks, .init = begin) { random_operations(0x7f1234500010, 69648, 2); }
Test(blocks, random_huge_alignment, .init = begin) { random_operations(0x7e0000000000, 1 << 21, 3); }

static uint64_t visited_bytes, visited;
static void add_up(struct snap_large *record, void *context) {
    (void)context;
    visited++;
    visited_bytes += record->size;
}

Test(blocks, records_say_what_is_there, .init = begin) {
    uint64_t bytes = 0;
    for (uint32_t n = 1; n <= 5000; n++) {
        struct block in = some_block(n), out;
        cr_assert(blocks_add(n * 65552, &in, 2));
        if (n % 3 == 0)
            cr_assert(blocks_take(n * 65552, &out));
        else
            bytes += in.size;
    }
    blocks_visit_records(add_up, NULL);
    cr_assert_eq(visited, 5000 - 5000 / 3);
    cr_assert_eq(visited_bytes, bytes);
}

Test(blocks, entries_outlive_a_ledger, .init = begin) {
    struct block in = some_block(9), out;
    cr_assert(blocks_add(0x5000, &in, 0));
    blocks_close_ledger();
    ledger_abandon();
    struct ledger_identity who = {.name = "child", .exe = "unit", .command = "unit"};
    cr_assert(ledger_begin(&who));
    blocks_open_ledger();
    blocks_visit_records(add_up, NULL);
    cr_assert_eq(visited, 0, "the record was the parent's");
    cr_assert(blocks_take(0x5000, &out) && equal(&in, &out));
}

enum { THREADS = 4, EACH = 3000, ROUNDS = 12 };

static void *churn(void *argument) {
    uintptr_t t = (uintptr_t)argument;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < EACH; i++) {
            struct block in = some_block(i + round + 1);
            if (!blocks_add((t * EACH + i + 1) * 4096, &in, (uint32_t)t)) return "not added";
        }
        for (uint32_t i = 0; i < EACH; i++) {
            struct block want = some_block(i + round + 1), out;
            if (!blocks_find((t * EACH + i + 1) * 4096, &out) || !equal(&out, &want)) return "not found";
            if (!blocks_take((t * EACH + i + 1) * 4096, &out) || !equal(&out, &want)) return "not taken";
        }
    }
    return NULL;
}

Test(blocks, threads_find_their_own, .init = begin) {
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, churn, (void *)t);
    for (int t = 0; t < THREADS; t++) {
        void *wrong;
        pthread_join(threads[t], &wrong);
        cr_assert_null(wrong, "%s", (char *)wrong);
    }
    blocks_visit_records(add_up, NULL);
    cr_assert_eq(visited, 0);
    cr_assert_eq(ledger_head->lost[SNAP_LOST_BLOCKS], 0);
}

/* Blocks are handed from thread to thread: one adds, another takes. */
static uintptr_t handed[EACH];
static void *take_handed(void *unused) {
    (void)unused;
    for (uint32_t i = 0; i < EACH; i++) {
        uintptr_t address;
        while (!(address = __atomic_load_n(&handed[i], __ATOMIC_ACQUIRE)))
            ;
        struct block want = some_block(i + 1), out;
        if (!blocks_take(address, &out) || !equal(&out, &want)) return "not what was handed over";
    }
    return NULL;
}

Test(blocks, another_thread_takes, .init = begin) {
    pthread_t thread;
    void *wrong;
    pthread_create(&thread, NULL, take_handed, NULL);
    for (uint32_t i = 0; i < EACH; i++) {
        struct block in = some_block(i + 1);
        cr_assert(blocks_add((i + 1) * 4096, &in, 0));
        __atomic_store_n(&handed[i], (i + 1) * 4096, __ATOMIC_RELEASE);
    }
    pthread_join(thread, &wrong);
    cr_assert_null(wrong, "%s", (char *)wrong);
}
