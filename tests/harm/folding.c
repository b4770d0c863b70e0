/* Threads whose call stacks are new all the time, more than there is memory for, so that dead ones make room. What they
 * have done so far is in a file for others to look at: blocks allocated, and bytes kept. Goes on for ever. */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { KEPT_SIZE = 10000, SIZE = 10, WAYS = 8, DEPTH = 7 };

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

static void onward(struct walk *walk) {
    if (walk->depth-- > 0)
        ways[next_random(&walk->state) % WAYS](walk);
    else
        walk->block = malloc(SIZE);
    __asm__ volatile("" ::: "memory");
}

#define WAY(n)                                                                                                         \
    __attribute__((noinline)) static void way##n(struct walk *walk) {                                                  \
        onward(walk);                                                                                                  \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }
WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)
static step *const ways[WAYS] = {way0, way1, way2, way3, way4, way5, way6, way7};

static void *allocate(uint64_t *state) {
    struct walk walk = {*state, DEPTH, NULL};
    onward(&walk);
    *state = walk.state;
    return walk.block;
}

static struct {
    uint64_t allocated, kept;
} *done;

__attribute__((noinline)) static void keep(void) {
    void *volatile block = malloc(KEPT_SIZE);
    (void)block;
    __atomic_fetch_add(&done->kept, KEPT_SIZE, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&done->allocated, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *seed) {
    uint64_t state = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u + 1;
    for (unsigned n = 0;; n++) {
        free(allocate(&state));
        __atomic_fetch_add(&done->allocated, 1, __ATOMIC_SEQ_CST);
        if (n % 5000 == 0) keep();
        if (n % 3000 == 0) usleep(1000);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1, fd = open(argv[2], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *done)) return 1;
    done = mmap(NULL, sizeof *done, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (intptr_t i = 1; i <= threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)i);
    }
    puts("begun");
    fflush(stdout);
    pause();
}
