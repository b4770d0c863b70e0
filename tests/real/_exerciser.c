// Four threads allocate by malloc, calloc, realloc, reallocarray, memalign, posix_memalign, aligned_alloc and valloc,
// free each other's blocks, and write every usable byte. Before that, one thread tries requests that must fail. Prints
// how many bytes and blocks of its own are live at the end. The test chooses the allocator.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, SLOTS = 2048, OPERATIONS = 60000 };

static struct {
    unsigned char *block;
    size_t size;
    char held;
} slots[SLOTS];

static void must(int holds, int line) {
    if (holds) return;
    char text[64];
    int n = snprintf(text, sizeof text, "line %d: not so\n", line);
    if (write(2, text, (size_t)n) == n) _exit(2);
    _exit(3);
}
#define MUST(condition) must((condition) != 0, __LINE__)

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static void *posix(size_t alignment, size_t size) {
    void *p = NULL;
    MUST(posix_memalign(&p, alignment, size) == 0);
    return p;
}

static void *obtain(unsigned way, size_t size) {
    switch (way) {
    case 0:
        return calloc(1, size);
    case 1:
        return memalign(64, size);
    case 2:
        return posix(256, size);
    case 3:
        return aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    case 4:
        return valloc(size);
    case 5:
        return realloc(NULL, size);
    case 6:
        return reallocarray(malloc(3), 1, size);
    case 7:
        return realloc(memalign(4096, 100), size);
    case 8:
        return realloc(posix(128, 5000), size);
    default:
        return malloc(size);
    }
}

static size_t asked(unsigned way, size_t size) { return way == 3 ? (size + 4095) / 4096 * 4096 : size; }

static void fill(unsigned char *p, size_t size) {
    size_t usable = malloc_usable_size(p);
    MUST(usable >= size);
    memset(p, (unsigned char)size | 1, usable);
}

static void check(const unsigned char *p, size_t size) {
    for (size_t i = 0; i < size; i += i < 64 ? 1 : 509) MUST(p[i] == ((unsigned char)size | 1));
}

static size_t random_size(uint64_t *state) {
    uint64_t r = next_random(state);
    return 1 + (r % 500 == 0 ? r / 500 % 400000 : r % 16 == 0 ? r / 16 % 20000 : r / 16 % 300);
}

static void step(uint64_t *state, size_t at) {
    size_t size = random_size(state);
    unsigned char *p = slots[at].block;
    unsigned way = next_random(state) % 24;
    if (p) check(p, slots[at].size);
    if (p && next_random(state) % 2) {
        p = realloc(p, size);
        MUST(p && *p == ((unsigned char)slots[at].size | 1));
    } else {
        free(p);
        p = next_random(state) % 4 ? obtain(way, size) : NULL;
        size = asked(way, size);
    }
    if (p) fill(p, size);
    slots[at].block = p;
    slots[at].size = p ? size : 0;
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u + 1;
    for (long i = 0; i < OPERATIONS; i++) {
        size_t at = next_random(&state) % SLOTS;
        if (__atomic_exchange_n(&slots[at].held, 1, __ATOMIC_ACQUIRE)) continue;
        step(&state, at);
        __atomic_store_n(&slots[at].held, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void exercise_failures(void) {
    volatile size_t huge = PTRDIFF_MAX;
    MUST(malloc(huge) == NULL);
    MUST(calloc(huge, 4) == NULL);
    void *p = malloc(100);
    MUST(realloc(p, huge) == NULL);
    free(p);
    MUST(posix_memalign(&p, 3, 8) != 0);
    free(NULL);
    MUST(malloc_usable_size(NULL) == 0);
    p = malloc(0);
    free(p);
}

int main(void) {
    pthread_t threads[THREADS];
    exercise_failures();
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    size_t live = 0, blocks = 0;
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].block) {
            check(slots[i].block, slots[i].size);
            live += slots[i].size;
            blocks++;
        }
    char text[64];
    int n = snprintf(text, sizeof text, "%zu %zu\n", live, blocks);
    return write(1, text, (size_t)n) != n;
}
