/* churn.c — allocates, starts threads and forks, and keeps its own record in a shared file that outlives it.
 *
 * churn TRUTH THREADS CHILDREN SECONDS
 *
 * TRUTH has one struct truth for each process, in the order of their starts (the first is the parent's). Around each
 * operation a thread notes how much is in flight. So a reader of the file knows at any moment by how much a ledger may
 * differ. All counted calls are made in this file, in the program's own module. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, PROCESSES = 64, SLOTS = 512, MAPS = 8, HELD = 64 };

struct tally {
    int64_t heap_bytes, heap_blocks, mapped_bytes, mapped_blocks;
    int64_t heap_flight, heap_flight_blocks, mapped_flight, mapped_flight_blocks;
    int64_t operations, inherited_freed, pad[6];
};
struct truth {
    int64_t pid, inherited, pad[14];
    struct tally threads[THREADS];
};

struct block {
    size_t size;
};

static struct truth *file, *mine;
static _Atomic(struct block *) exchange[SLOTS];
static struct block *held[HELD]; /* made before all forks, freed in children */
static volatile int stop;
static int thread_count;

#define SET(word, value) __atomic_store_n(&(word), (value), __ATOMIC_SEQ_CST)
#define ADD(word, value) SET(word, (word) + (value))

static void begin(struct tally *t, int64_t bytes) {
    SET(t->heap_flight_blocks, 1);
    SET(t->heap_flight, bytes);
}

static void end(struct tally *t, int64_t bytes, int64_t blocks) {
    ADD(t->heap_bytes, bytes);
    ADD(t->heap_blocks, blocks);
    SET(t->heap_flight, 0);
    SET(t->heap_flight_blocks, 0);
    ADD(t->operations, 1);
}

static size_t any_size(unsigned *seed) {
    unsigned kind = rand_r(seed) % 100;
    if (kind < 90) return sizeof(struct block) + rand_r(seed) % 2000;
    return kind < 97 ? 4096 + rand_r(seed) % 30000 : 65536 + rand_r(seed) % 300000;
}

static struct block *make(struct tally *t, unsigned *seed) {
    size_t size = any_size(seed);
    void *p = NULL;
    begin(t, (int64_t)size);
    switch (rand_r(seed) % 5) {
    case 0:
        p = calloc(1, size);
        break;
    case 1:
        p = posix_memalign(&p, 64, size) ? NULL : p;
        break;
    case 2:
        p = rand_r(seed) % 8 ? malloc(size) : aligned_alloc(4096, size);
        break;
    default:
        p = malloc(size);
    }
    if (!p) abort();
    ((struct block *)p)->size = size;
    end(t, (int64_t)size, 1);
    return p;
}

static void destroy(struct tally *t, struct block *b) {
    int64_t size = (int64_t)b->size;
    begin(t, size);
    free(b);
    end(t, -size, -1);
}

static struct block *resize(struct tally *t, struct block *b, unsigned *seed) {
    int64_t before = (int64_t)b->size, size = (int64_t)any_size(seed);
    begin(t, before + size);
    b = realloc(b, (size_t)size);
    b->size = (size_t)size;
    end(t, size - before, 0);
    return b;
}

static int64_t size_of_map(int i) { return (1 + i) * 8192; }

static void make_map(struct tally *t, char *maps[MAPS], int i) {
    maps[i] = mmap(NULL, (size_t)size_of_map(i), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ADD(t->mapped_bytes, size_of_map(i));
    ADD(t->mapped_blocks, 1);
}

static void destroy_map(struct tally *t, char *maps[MAPS], int i) {
    munmap(maps[i], (size_t)size_of_map(i));
    maps[i] = NULL;
    ADD(t->mapped_bytes, -size_of_map(i));
    ADD(t->mapped_blocks, -1);
}

static void change_map(struct tally *t, char *maps[MAPS], int i) {
    SET(t->mapped_flight_blocks, 2);
    SET(t->mapped_flight, 2 * size_of_map(i));
    (maps[i] ? destroy_map : make_map)(t, maps, i);
    SET(t->mapped_flight, 0);
    SET(t->mapped_flight_blocks, 0);
}

static void *churn(void *argument) {
    struct tally *t = argument;
    unsigned seed = (unsigned)(t - mine->threads) * 977 + (unsigned)getpid();
    char *maps[MAPS] = {0};
    while (!stop) {
        struct block *b = make(t, &seed);
        if (rand_r(&seed) % 3 == 0) b = resize(t, b, &seed);
        b = __atomic_exchange_n(&exchange[rand_r(&seed) % SLOTS], b, __ATOMIC_ACQ_REL);
        if (b) destroy(t, b);
        if (t == mine->threads + 1 &&
            rand_r(&seed) % 8 == 0) /* only one thread maps: if several did, some events might wait in a queue */
            change_map(t, maps, (int)(rand_r(&seed) % MAPS));
    }
    for (int i = 0; i < MAPS; i++)
        if (maps[i]) change_map(t, maps, i);
    return NULL;
}

/* Threads come and go: each lives a fraction of a second. */
static void run(double seconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        pthread_t threads[THREADS];
        stop = 0;
        for (int i = 1; i <= thread_count; i++) pthread_create(&threads[i], NULL, churn, mine->threads + i);
        usleep(60000);
        stop = 1;
        for (int i = 1; i <= thread_count; i++) pthread_join(threads[i], NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((double)(now.tv_sec - start.tv_sec) + 1e-9 * (double)(now.tv_nsec - start.tv_nsec) < seconds);
}

static void child(int number, double seconds) {
    mine = file + 1 + number;
    mine->inherited = file->threads[0].heap_bytes;
    SET(mine->pid, getpid());
    struct tally *t = mine->threads;
    for (int i = 0; i < HELD; i += 2) {
        int64_t size = (int64_t)held[i]->size;
        SET(t->heap_flight, size);
        free(held[i]);
        ADD(t->inherited_freed, size);
        SET(t->heap_flight, 0);
    }
    run(seconds / 4);
    _exit(0);
}

int main(int count, char **arguments) {
    if (count < 5) return 2;
    int fd = open(arguments[1], O_RDWR | O_CREAT, 0600), children = atoi(arguments[3]);
    size_t length = PROCESSES * sizeof *file;
    if (fd < 0 || ftruncate(fd, (off_t)length)) return 3;
    /* A raw system call maps the file, so that memstow does not count this mapping. */
    file = mine =
        (void *)syscall(9 /* mmap */, 0L, length, (long)(PROT_READ | PROT_WRITE), (long)MAP_SHARED, (long)fd, 0L);
    close(fd);
    thread_count = atoi(arguments[2]);
    unsigned seed = 5;
    for (int i = 0; i < HELD; i++) held[i] = make(mine->threads, &seed);
    SET(mine->pid, getpid());
    for (int i = 0; i < children && i < PROCESSES - 1; i++) {
        if (fork() == 0) child(i, atof(arguments[4]));
        run(atof(arguments[4]) / (children ? children : 1));
    }
    if (!children) run(atof(arguments[4]));
    while (wait(NULL) > 0)
        ;
    return 0;
}
