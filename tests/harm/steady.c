/* steady.c — many operations that leave the total as it is. Each of THREADS threads allocates a block, then frees an
 * older block of the same size, and so on. Any thread may have allocated the older block. One more thread unmaps a
 * mapping, then maps a new one of the same size, and so on.
 *
 * steady THREADS SECONDS
 *
 * prints "ready BASE SPAN MAPPED MAPPED_SPAN". At any moment,
 * - blocks have from BASE to BASE + SPAN bytes: SPAN is one of the largest blocks for each thread;
 * - mappings have from MAPPED - MAPPED_SPAN to MAPPED bytes: MAPPED_SPAN is one mapping. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZES = 4, EACH = 64, MAPS = 16, MAP = 1 << 20 };
static const size_t sizes[SIZES] = {48, 1000, 20000, 300000};
static _Atomic(void *) blocks[SIZES][EACH];
static char *maps[MAPS];

static void *replace(void *argument) {
    unsigned seed = (unsigned)(long)argument;
    for (;;) {
        unsigned kind = rand_r(&seed) % 64, size = kind < 50 ? 0 : kind < 60 ? 1 : kind < 63 ? 2 : 3;
        void *p = malloc(sizes[size]);
        p = __atomic_exchange_n(&blocks[size][rand_r(&seed) % EACH], p, __ATOMIC_ACQ_REL);
        free(p);
    }
    return NULL;
}

static void *remap(void *argument) {
    for (unsigned i = 0;; i = (i + 1) % MAPS) {
        munmap(maps[i], MAP);
        maps[i] = mmap(NULL, MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    return argument;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 2;
    size_t base = 0, span = 0;
    for (int i = 0; i < SIZES * EACH; i++) {
        blocks[i % SIZES][i / SIZES] = malloc(sizes[i % SIZES]);
        base += sizes[i % SIZES];
    }
    for (int i = 0; i < MAPS; i++)
        maps[i] = mmap(NULL, MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    span = (size_t)threads * sizes[SIZES - 1];
    char line[200];
    int length = snprintf(line, sizeof line, "ready %zu %zu %d %d\n", base, span, MAPS * MAP, MAP);
    pthread_t thread;
    for (long i = 0; i < threads; i++) pthread_create(&thread, NULL, replace, (void *)(i + 1));
    pthread_create(&thread, NULL, remap, NULL);
    write(1, line, (size_t)length);
    sleep((unsigned)atoi(arguments[2]));
    return 0;
}
