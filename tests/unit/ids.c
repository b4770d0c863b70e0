// A set of ids: it has the ids that were added; the lowest id from a number on is taken first; two threads never take
// the same id.
#include <criterion/criterion.h>
#include <pthread.h>

#include "preload/base/ids.h"

enum { THREADS = 4, EACH = 50000 };

Test(ids, keep_what_was_added) {
    static const uint32_t some[] = {0, 1, 63, 64, 4095, 4096, 262143, 262144, IDS_LIMIT - 1};
    enum { COUNT = sizeof some / sizeof *some };
    struct ids *ids = ids_new();
    cr_assert_eq(ids_next(ids, 0), IDS_NONE);
    for (int i = COUNT - 1; i >= 0; i--) cr_assert(ids_add(ids, some[i]));
    cr_assert_not(ids_add(ids, 64), "it is there");
    cr_assert_eq(ids_count(ids), COUNT);
    uint32_t id = 0;
    for (int i = 0; i < COUNT; i++, id++) {
        cr_assert_eq(id = ids_next(ids, id), some[i]);
        cr_assert(ids_has(ids, id));
    }
    cr_assert_eq(ids_next(ids, id), IDS_NONE);
    cr_assert_not(ids_has(ids, 62));
    cr_assert_eq(ids_take(ids, 65), 4095);
    cr_assert_eq(ids_take(ids, 65), 4096);
    cr_assert_not(ids_remove(ids, 4096), "it is gone");
    ids_clear(ids);
    cr_assert_eq(ids_count(ids), 0);
    cr_assert_eq(ids_next(ids, 0), IDS_NONE);
}

static struct ids *shared;
static pthread_barrier_t start;
static uint8_t taken[THREADS * EACH];

/* Each thread adds its own ids, and takes as many ids as it adds, whichever thread added them. */
static void *add_and_take(void *thread) {
    uint32_t first = (uint32_t)(uintptr_t)thread;
    pthread_barrier_wait(&start);
    for (uint32_t i = 0; i < EACH; i++) {
        ids_add(shared, first + i * THREADS);
        uint32_t id;
        while ((id = ids_take(shared, 0)) == IDS_NONE) /* another thread took it: wait for that thread's id */
            ;
        __atomic_fetch_add(&taken[id], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

Test(ids, go_to_one_thread_each) {
    pthread_t threads[THREADS];
    shared = ids_new();
    pthread_barrier_init(&start, NULL, THREADS);
    for (uintptr_t t = 0; t < THREADS; t++) pthread_create(&threads[t], NULL, add_and_take, (void *)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    for (uint32_t id = 0; id < THREADS * EACH; id++) cr_assert_eq(taken[id], 1, "id %u", id);
    cr_assert_eq(ids_count(shared), 0);
}
