// The table of stowed memory is compared with a model that has one flag for each page. A thread that touches a chunk
// while it moves waits until the chunk has moved.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/stow/stow_table.h"

enum { PAGE = 4096, PAGES = 4000 };

static uint32_t model[PAGES];

static void check(void) {
    struct stow_region region = {.end = 0};
    uint32_t page = 0;
    while (stow_table_first(region.end, (uint64_t)PAGES * PAGE, &region)) {
        for (; page < region.start / PAGE; page++) cr_assert_eq(model[page], 0);
        for (; page < region.end / PAGE; page++) cr_assert_eq(model[page], region.owner);
    }
    for (; page < PAGES; page++) cr_assert_eq(model[page], 0);
}

Test(stow_table, random_operations) {
    unsigned seed = 7;
    stow_table_lock();
    for (int i = 0; i < 30000; i++) {
        uint32_t start = (uint32_t)rand_r(&seed) % PAGES, length = 1 + (uint32_t)rand_r(&seed) % (i % 7 ? 9 : 400);
        uint32_t end = start + length < PAGES ? start + length : PAGES, owner = (uint32_t)rand_r(&seed) % 3;
        if (owner)
            cr_assert(stow_table_put((uint64_t)start * PAGE, (uint64_t)end * PAGE, owner));
        else
            stow_table_take((uint64_t)start * PAGE, (uint64_t)end * PAGE);
        for (uint32_t page = start; page < end; page++) model[page] = owner;
        if (i % 50 == 0) check();
    }
    check();
    stow_table_take(0, UINT64_MAX);
    cr_assert_eq(stow_table_count(), 0);
    stow_table_unlock();
}

Test(stow_table, cut_into_very_many) {
    struct stow_region region;
    stow_table_lock();
    cr_assert(stow_table_put(0, 20000 * PAGE, 1));
    for (uint64_t page = 1; page < 20000; page += 2) stow_table_take(page * PAGE, (page + 1) * PAGE);
    cr_assert_eq(stow_table_count(), 10000);
    cr_assert(stow_table_first(19999 * (uint64_t)PAGE, UINT64_MAX, &region) == false);
    cr_assert(stow_table_first(500 * PAGE, 501 * PAGE, &region) && region.start == 500 * PAGE &&
              region.end == 501 * PAGE);
    cr_assert_not(stow_table_first(500 * PAGE, 500 * PAGE, &region), "an empty range has none");
    stow_table_unlock();
}

static volatile int order, seen;

static void *wait_for_it(void *unused) {
    stow_table_lock();
    stow_table_wait(PAGE, 2 * PAGE);
    seen = ++order;
    stow_table_unlock();
    return unused;
}

Test(stow_table, who_touches_a_chunk_waits) {
    pthread_t thread;
    stow_table_lock();
    stow_table_begin(0, 4 * PAGE);
    stow_table_unlock();
    cr_assert_eq(pthread_create(&thread, NULL, wait_for_it, NULL), 0);
    usleep(50000);
    stow_table_lock();
    stow_table_wait(4 * PAGE, 5 * PAGE); /* nobody waits for memory beside the chunk */
    cr_assert_eq(++order, 1);
    stow_table_end();
    stow_table_unlock();
    pthread_join(thread, NULL);
    cr_assert_eq(seen, 2);
}

Test(stow_table, locked_again_by_the_same_thread) {
    stow_table_lock();
    stow_table_lock();
    stow_table_unlock();
    cr_assert(stow_table_put(0, PAGE, 1));
    stow_table_unlock();
    stow_table_abandon();
    stow_table_lock();
    cr_assert_eq(stow_table_count(), 1);
    stow_table_unlock();
}
