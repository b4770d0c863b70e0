// There are more stacks than there is memory for, so stacks without live blocks make room for others. Live memory stays
// exact to the byte, and each live block keeps its whole stack. This holds for blocks of every thread, and for blocks
// that were allocated before or after stacks made room.
// env: MEMSTOW_STACK_MEMORY=3000000
// run:
// timeout: 300
#include "expect.h"
#include "random_stacks.h"

#include <pthread.h>

enum { THREADS = 3, ROUNDS = 150000, SLOTS = 512, SENTINEL = 100000, PASSES = 40 };

static struct {
    void *block;
    size_t size;
    char held;
} slots[SLOTS];
static uint64_t allocated;

static void *allocate_one(uint64_t *state, size_t size) {
    __atomic_fetch_add(&allocated, 1, __ATOMIC_RELAXED);
    return allocate(state, size);
}

/* A thread that holds a slot's flag owns the slot's block. So blocks wander between threads. */
static void *work(void *seed) {
    uint64_t state = first_state((uintptr_t)seed);
    for (long i = 0; i < ROUNDS; i++) {
        size_t at = next_random(&state) % SLOTS;
        if (__atomic_exchange_n(&slots[at].held, 1, __ATOMIC_ACQUIRE)) continue;
        free(slots[at].block);
        slots[at].size = 1 + next_random(&state) % 300;
        slots[at].block = allocate_one(&state, slots[at].size);
        __atomic_store_n(&slots[at].held, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

/* A new stack, with a size that no other block has. */
#define SENTINELS(name)                                                                                                \
    __attribute__((noinline)) static void *name##_inner(size_t size) {                                                 \
        void *p = malloc(size);                                                                                        \
        __asm__ volatile("" ::: "memory");                                                                             \
        return p;                                                                                                      \
    }                                                                                                                  \
    __attribute__((noinline)) static void *name(size_t size) {                                                         \
        void *p = name##_inner(size);                                                                                  \
        __asm__ volatile("" ::: "memory");                                                                             \
        return p;                                                                                                      \
    }
SENTINELS(before_all)
SENTINELS(after_all)

int main(void) {
    pthread_t threads[THREADS];
    static void *kept[2];
    kept[0] = before_all(SENTINEL);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    uint64_t state = 1;
    for (int i = 0; i < ROUNDS / 10; i++) free(allocate_one(&state, 1));
    /* Allocates at the same stacks again and again until there is room for all, because a fold takes time and waits for
     * its turn. */
    for (int pass = 0; pass < PASSES; pass++) {
        uint64_t same = state;
        free(kept[1]);
        kept[1] = after_all(SENTINEL + 1);
        for (int i = 0; i < SLOTS; i++) {
            free(slots[i].block);
            slots[i].block = allocate_one(&same, slots[i].size = 1 + (size_t)i);
        }
        usleep(5000);
    }
    allocated += PASSES - 1; /* the earlier blocks of kept[1] */
    MUST(kept[0] && kept[1]);
    size_t live = 2 * SENTINEL + 1, blocks = 2;
    for (int i = 0; i < SLOTS; i++) {
        live += slots[i].block ? slots[i].size : 0;
        blocks += slots[i].block != NULL;
    }
    EXPECT("sites[stack[0].module=*stacks_fold*].live_bytes", live);
    EXPECT("sites[stack[0].module=*stacks_fold*].live_blocks", blocks);
    say("expect totals.allocated_blocks >= %llu", (unsigned long long)allocated + 2);
    say("expect totals.allocated_blocks <= %llu", (unsigned long long)allocated + 40);
    say("expect lost.folded > 10000");
    say("expect stack %d before_all_inner<before_all<main", SENTINEL);
    say("expect stack %d after_all_inner<after_all<main", SENTINEL + 1);
    return 0;
}
