// Where nearly all stacks are dead, room is made before there is none: no stack is lost, however many there are. (With
// several threads that do nothing but make new stacks, some are lost while one of them makes room: nobody waits.)
// env: MEMSTOW_STACK_MEMORY=8000000
// needs: stacks
// timeout: 300
#include "expect.h"

#include <pthread.h>
#include <stdint.h>

enum { THREADS = 2, ROUNDS = 200000, PAUSE = 50, WAYS = 8, DEPTH = 7 };

struct walk {
    uint64_t state;
    int depth;
    void *block;
};
typedef void step(struct walk *walk);
static step *const ways[WAYS];

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

__attribute__((noinline)) static void onward(struct walk *walk) {
    if (walk->depth-- > 0)
        ways[next_random(&walk->state) % WAYS](walk);
    else
        walk->block = malloc(1);
    __asm__ volatile("" ::: "memory");
}

#define WAY(n)                                                                                                         \
    __attribute__((noinline)) static void way##n(struct walk *walk) {                                                  \
        onward(walk);                                                                                                  \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }
WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)
static step *const ways[WAYS] = {way0, way1, way2, way3, way4, way5, way6, way7};

static void once(uint64_t *state) {
    struct walk walk = {*state, DEPTH, NULL};
    onward(&walk);
    *state = walk.state;
    free(walk.block);
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u + 1;
    for (long i = 0; i < ROUNDS; i++) {
        once(&state);
        if (i % PAUSE == 0) usleep(1000);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    uint64_t state = 1;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (long i = 0; i < ROUNDS; i++) once(&state);
    EXPECT("sites[stack[0].module=*stacks_fold_in_time*].live_bytes", 0);
    say("expect totals.allocated_blocks >= %d", (THREADS + 1) * ROUNDS);
    say("expect totals.allocated_blocks <= %d", (THREADS + 1) * ROUNDS + 40);
    say("expect lost.folded > %d", (THREADS + 1) * ROUNDS / 2);
    say("expect lost.stacks == 0");
    return 0;
}
