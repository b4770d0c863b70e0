/* runs.c — many runs of a program with threads that allocate at many call stacks in scopes of their own. Each run
 * leaves blocks, which are freed AGE runs later. Arguments: runs, threads, and how often each node allocates in a run
 * (200 if this argument is missing). At the end the program prints how many bytes each owner must have. */
#include "../prog/abi.h"
#include "../prog/expect.h"

#include <pthread.h>

enum { NODES = 4, AGE = 8, DEPTH = 12, MODELS = 2, THREADS = 8 };

static uint32_t nodes[NODES], models[MODELS];
static int threads, runs, each = 200;
static pthread_barrier_t barrier;

struct block {
    struct block *next;
    size_t size;
    uint32_t node, model;
};
static struct block *kept[THREADS][AGE]; /* blocks of the last runs */
static uint64_t live_nodes[NODES], live_models[MODELS];

/* Different bits lead to different call stacks. */
static __attribute__((noinline)) void *left(uint32_t bits, int depth, size_t size);
static __attribute__((noinline)) void *right(uint32_t bits, int depth, size_t size) {
    void *p = depth ? (bits & 1 ? left : right)(bits >> 1, depth - 1, size) : malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}
static __attribute__((noinline)) void *left(uint32_t bits, int depth, size_t size) {
    void *p = depth ? (bits & 1 ? left : right)(bits >> 1, depth - 1, size) : malloc(size);
    __asm__ volatile("" : "+r"(p));
    return p;
}

static void drop(struct block *block) {
    while (block) {
        struct block *next = block->next;
        __atomic_fetch_sub(&live_nodes[block->node], block->size, __ATOMIC_RELAXED);
        __atomic_fetch_sub(&live_models[block->model], block->size, __ATOMIC_RELAXED);
        free(block);
        block = next;
    }
}

static void keep(int thread, int run, struct block *block, size_t size, uint32_t node, uint32_t model) {
    *block = (struct block){kept[thread][run % AGE], size, node, model};
    kept[thread][run % AGE] = block;
    __atomic_fetch_add(&live_nodes[node], size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&live_models[model], size, __ATOMIC_RELAXED);
}

static void one_run(int thread, int run, uint32_t *random) {
    drop(kept[(thread + 1) % threads][run % AGE]); /* blocks that another thread has allocated */
    pthread_barrier_wait(&barrier);
    kept[(thread + 1) % threads][run % AGE] = NULL;
    pthread_barrier_wait(&barrier);
    for (uint32_t node = 0; node < NODES; node++) {
        uint32_t model = (uint32_t)run % MODELS;
        MUST(CALL(0, memstow_scope_enter, nodes[node]) == 0);
        MUST(CALL(0, memstow_scope_enter, models[model]) == 0);
        for (int i = 0; i < each; i++) {
            *random = *random * 1664525 + 1013904223;
            size_t size = sizeof(struct block) + (*random >> 20) % 300;
            struct block *block = right(*random >> 8, DEPTH, size);
            MUST(block);
            if (i % 16)
                free(block);
            else
                keep(thread, run, block, size, node, model);
        }
        MUST(CALL(0, memstow_scope_leave, models[model]) == 0);
        MUST(CALL(0, memstow_scope_leave, nodes[node]) == 0);
    }
}

static void *work(void *number) {
    int thread = (int)(intptr_t)number;
    uint32_t random = (uint32_t)thread + 1, run_id = 0;
    for (int run = 0; run < runs; run++) {
        pthread_barrier_wait(&barrier);
        if (!thread) run_id = (uint32_t)CALL(1, memstow_run_begin, "run");
        pthread_barrier_wait(&barrier);
        one_run(thread, run, &random);
        pthread_barrier_wait(&barrier);
        if (!thread) MUST(CALL(0, memstow_run_end, run_id, MEMSTOW_OK) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t workers[THREADS];
    MUST(argc >= 3);
    runs = atoi(argv[1]);
    threads = atoi(argv[2]);
    if (argc > 3) each = atoi(argv[3]);
    abi_find();
    char name[16];
    for (uint32_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "node%u", i);
        nodes[i] = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_NODE, name, "", i + 1, 0);
    }
    for (uint32_t i = 0; i < MODELS; i++) {
        snprintf(name, sizeof name, "model%u", i);
        models[i] = (uint32_t)CALL(1, memstow_owner_open, MEMSTOW_MODEL, name, "", i + 1, 0);
    }
    pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (intptr_t i = 0; i < threads; i++) MUST(pthread_create(&workers[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < threads; i++) pthread_join(workers[i], NULL);
    for (uint32_t i = 0; i < NODES; i++) say("node%u %llu", i, (unsigned long long)live_nodes[i]);
    for (uint32_t i = 0; i < MODELS; i++) say("model%u %llu", i, (unsigned long long)live_models[i]);
    return 0;
}
