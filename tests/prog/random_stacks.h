/* random_stacks.h — allocations from any of sixteen million call stacks. */
#ifndef RANDOM_STACKS_H
#define RANDOM_STACKS_H

#include <stdint.h>
#include <stdlib.h>

enum { WAYS = 8, DEPTH = 7 };

struct walk {
    uint64_t state;
    int depth;
    size_t size;
    void *block;
};
typedef void step(struct walk *walk);
static step *const ways[WAYS];

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

__attribute__((noinline)) static void leaf(struct walk *walk) {
    walk->block = malloc(walk->size);
    __asm__ volatile("" ::: "memory");
}

static void onward(struct walk *walk) {
    if (walk->depth-- > 0)
        ways[next_random(&walk->state) % WAYS](walk);
    else
        leaf(walk);
    __asm__ volatile("" ::: "memory");
}

#define WAY(n)                                                                                                         \
    __attribute__((noinline)) static void way##n(struct walk *walk) {                                                  \
        onward(walk);                                                                                                  \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }
WAY(0)
WAY(1)
WAY(2)
WAY(3) WAY(4) WAY(5) WAY(6) WAY(7) static step *const ways[WAYS] = {way0, way1, way2, way3, way4, way5, way6, way7};

static void *allocate(uint64_t *state, size_t size) {
    struct walk walk = {*state, DEPTH, size, NULL};
    ways[next_random(&walk.state) % WAYS](&walk);
    *state = walk.state;
    return walk.block;
}

/* The state of a thread, from its number. */
static uint64_t first_state(uintptr_t number) { return number * 0x9E3779B97F4A7C15u + 1; }

#endif
