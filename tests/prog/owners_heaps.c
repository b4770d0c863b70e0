// An owner's own heap has blocks of all sizes and alignments. They may be freed by another thread, and freed or resized
// in another owner's scope. When the last block of a retired owner is freed, the heap's memory goes back to the system
// at once, even while other threads go on allocating.
// run: --stacks=full
// run: --stacks=none
// run: --stacks=none --allocator=mimalloc
// needs: mimalloc
#include "abi.h"
#include "expect.h"
#include "resident.h"

#include <malloc.h>
#include <pthread.h>
#include <stdint.h>

enum { BLOCKS = 200000, SLEPT_ON = BLOCKS / 4, OWNERS = 1000, MIB = 1 << 20 };

static void *blocks[BLOCKS];
static bool over;

static void enter(uint32_t owner) { MUST(CALL(0, memstow_scope_enter, owner) == 0); }
static void leave(uint32_t owner) { MUST(CALL(0, memstow_scope_leave, owner) == 0); }

static uint32_t open_model(const char *name, uint64_t key) {
    return (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, name, "", key, 0);
}

static void *allocate_on(void *random) {
    uint32_t state = (uint32_t)(uintptr_t)random;
    void *mine[64] = {NULL};
    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        state = state * 1664525 + 1013904223;
        free(mine[state >> 26]);
        mine[state >> 26] = malloc(state >> 20 & 2047);
    }
    for (int i = 0; i < 64; i++) free(mine[i]);
    return NULL;
}

static void fill(size_t i, size_t size) {
    blocks[i] = i % 7 == 0 ? calloc(1, size) : i % 11 == 0 ? aligned_alloc(64, (size + 63) / 64 * 64) : malloc(size);
    MUST(blocks[i]);
    memset(blocks[i], (int)i, size);
}

static size_t size_of(size_t i) { return 16 + i * 7919 % 2000; }

static void *free_half(void *scope) {
    enter((uint32_t)(uintptr_t)scope);
    for (size_t i = 0; i < BLOCKS; i += 2) free(blocks[i]);
    leave((uint32_t)(uintptr_t)scope);
    return NULL;
}

/* Allocates some 200 MB. Two threads free a half each; one of them is in the scope of another owner. */
static void come_and_go(uint32_t other) {
    uint32_t model = open_model("model", 1);
    uint64_t before = resident();
    enter(model);
    for (size_t i = 0; i < BLOCKS; i++) fill(i, size_of(i));
    leave(model);
    for (size_t i = 0; i < BLOCKS; i++) MUST(((unsigned char *)blocks[i])[size_of(i) - 1] == (i & 255));
    uint64_t with = resident();
    MUST(!has_memstow || with > before + 150 * MIB);
    MUST(CALL(0, memstow_owner_retire, model) == 0);
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, free_half, (void *)(uintptr_t)other) == 0);
    for (size_t i = 1; i < BLOCKS; i += 2) free(blocks[i]);
    pthread_join(thread, NULL);
    uint64_t after = resident();
    MUST(!has_memstow || after < before + (with - before) / 10);
}

/* Two threads fill the owner's heap, then sleep. Meanwhile the main thread frees all their blocks. The memory goes back
 * to the system although the two threads do not run. Then they go on with other heaps. */
static pthread_barrier_t all;
static uint32_t slept_in;

static void *fill_and_sleep(void *part) {
    enter(slept_in);
    for (size_t i = (uintptr_t)part; i < SLEPT_ON; i += 2) fill(i, size_of(i));
    leave(slept_in);
    pthread_barrier_wait(&all); /* filled */
    pthread_barrier_wait(&all); /* gone */
    for (int i = 0; i < 2000; i++) {
        unsigned char *p = malloc(size_of((size_t)i));
        MUST(p);
        p[0] = 1;
        free(p);
    }
    return NULL;
}

static void sleepers(void) {
    pthread_t threads[2];
    slept_in = open_model("slept in", 4);
    uint64_t before = resident();
    pthread_barrier_init(&all, NULL, 3);
    for (uintptr_t i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, fill_and_sleep, (void *)i) == 0);
    pthread_barrier_wait(&all);
    uint64_t with = resident();
    MUST(!has_memstow || with > before + 35 * MIB);
    MUST(CALL(0, memstow_owner_retire, slept_in) == 0);
    for (size_t i = 0; i < SLEPT_ON; i++) free(blocks[i]);
    uint64_t after = resident();
    MUST(!has_memstow || after < before + (with - before) / 10);
    pthread_barrier_wait(&all);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void resize(uint32_t a, uint32_t b) {
    for (size_t size = 1; size < 4 * MIB; size = size * 3 + 1) {
        enter(a);
        unsigned char *p = malloc(size);
        memset(p, 7, size);
        p = realloc(p, size * 2);
        MUST(p && p[size - 1] == 7 && malloc_usable_size(p) >= size * 2);
        leave(a);
        enter(b);
        p = realloc(p, size * 4);
        MUST(p && p[0] == 7 && p[size - 1] == 7);
        leave(b);
        p = realloc(p, size / 2 + 1);
        MUST(p && p[size / 2] == 7);
        free(p);
    }
}

static void large(uint32_t owner) {
    enter(owner);
    unsigned char *p = malloc(3 * MIB + 5), *zero = calloc(3, MIB), *page = NULL;
    MUST(p && zero && posix_memalign((void **)&page, 4096, MIB) == 0);
    leave(owner);
    MUST((!has_memstow || (uintptr_t)p % 4096 == 0) && (uintptr_t)page % 4096 == 0 && zero[3 * MIB - 1] == 0);
    memset(p, 1, 3 * MIB + 5);
    p = realloc(p, 9 * MIB);
    MUST(p && p[3 * MIB + 4] == 1 && malloc_usable_size(p) >= 9 * MIB);
    p = realloc(p, 100);
    MUST(p && p[99] == 1);
    free(p);
    free(zero);
    free(page);
}

static void many(void) {
    for (uint32_t i = 0; i < OWNERS; i++) {
        uint32_t owner = open_model("many", 1000 + i);
        enter(owner);
        blocks[i] = malloc(1000);
        leave(owner);
        MUST(blocks[i]);
    }
    for (uint32_t i = 0; i < OWNERS; i++) {
        MUST(CALL(0, memstow_owner_retire, open_model("many", 1000 + i)) == 0);
        free(blocks[i]);
    }
}

int main(void) {
    abi_find();
    uint32_t a = open_model("a", 2), b = open_model("b", 3);
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) MUST(pthread_create(&threads[i], NULL, allocate_on, (void *)(i + 1)) == 0);
    come_and_go(a);
    come_and_go(b);
    sleepers();
    resize(a, b);
    large(a);
    many();
    __atomic_store_n(&over, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    enter(a);
    MUST(malloc(300000) && malloc(30)); /* stay */
    leave(a);
    EXPECT("owners[name=a].live_bytes", 300030);
    EXPECT("owners[name=b].live_bytes", 0);
    EXPECT("owners[name=model].live_bytes", 0);
    EXPECT("owners[name=slept*].live_bytes", 0);
    EXPECT("owners[name=many].live_bytes", 0);
    return 0;
}
