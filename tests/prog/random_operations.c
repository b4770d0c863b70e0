// Threads allocate, resize, hand over and free at random, and know their own live bytes: the ledger agrees to the byte.
// run:
// run: --allocator=mimalloc
// timeout: 300
#include "expect.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 4, SLOTS = 4096, DEFAULT_OPERATIONS = 400000 };

/* A thread that holds a slot's flag owns the slot's block. So blocks wander between threads. */
static struct {
    unsigned char *block;
    size_t size;
    char held;
} slots[SLOTS];
static long operations;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static size_t random_size(uint64_t *state) {
    uint64_t r = next_random(state);
    return r % 1000 == 0 ? r / 1000 % 300000 : r % 16 == 0 ? r / 16 % 20000 : r / 16 % 300;
}

static void *allocate(uint64_t *state, size_t size) {
    switch (next_random(state) % 8) {
    case 0:
        return calloc(1, size);
    case 1:
        return memalign((size_t)32 << next_random(state) % 9, size);
    case 2:
        return realloc(malloc(size / 3), size ? size : 1);
    default:
        return malloc(size);
    }
}

static void step(uint64_t *state, size_t at) {
    size_t size = random_size(state) + 1;
    unsigned char *p = slots[at].block;
    MUST(!p || p[0] == (unsigned char)slots[at].size);
    if (p && next_random(state) % 2) {
        p = realloc(p, size);
    } else {
        free(p);
        p = next_random(state) % 4 ? allocate(state, size) : NULL;
    }
    if (p) p[0] = (unsigned char)size;
    slots[at].block = p;
    slots[at].size = size;
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u + 1;
    for (long i = 0; i < operations; i++) {
        size_t at = next_random(&state) % SLOTS;
        if (__atomic_exchange_n(&slots[at].held, 1, __ATOMIC_ACQUIRE)) continue;
        step(&state, at);
        __atomic_store_n(&slots[at].held, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    const char *asked = getenv("OPERATIONS");
    operations = (asked ? atol(asked) : DEFAULT_OPERATIONS) / THREADS;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    size_t live = 0, blocks = 0;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].block) {
            live += slots[i].size;
            blocks++;
        }
    EXPECT("sites[stack[0].module=*random_operations*].live_bytes", live);
    EXPECT("sites[stack[0].module=*random_operations*].live_blocks", blocks);
    return 0;
}
