// --stacks=sample: estimates are near the program's own figures, and mappings and all sums are exact. This holds with
// several threads, and for blocks that move, that another thread frees, or that a child inherits.
// needs: stacks
// build: -O2 -lm
// run: --stacks=sample:16K
// run: --stacks=sample:1
// run: --stacks=sample:16K --allocator=mimalloc
// timeout: 300
#include "stacks.h"

#include <math.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { SMALL = 48, SMALLS = 400000, MIDDLE = 3000, MIDDLES = 30000, LARGE = 100000, LARGES = 600 };
enum { GROWN = 700, GROWNS = 20000, MAPPED = 123 * 4096, THREADS = 3, SIGMAS = 5 };

/* The blocks of all threads. After all blocks are allocated, other threads free the first half of each kind except
 * `grown`. */
static void *small[SMALLS], *middle[MIDDLES], *large[LARGES], *grown[GROWNS];

#define MAKES(name, size)                                                                                              \
    FRAME static void *make_##name(void) {                                                                             \
        void *p = malloc(size);                                                                                        \
        STAY;                                                                                                          \
        return p;                                                                                                      \
    }
MAKES(small, SMALL)
MAKES(middle, MIDDLE)
MAKES(large, LARGE)

FRAME static void *grow(void *p) {
    p = realloc(p, GROWN);
    STAY;
    return p;
}

static void *work(void *number) {
    long first = (long)number;
    for (long i = first; i < SMALLS; i += THREADS) small[i] = make_small();
    for (long i = first; i < MIDDLES; i += THREADS) middle[i] = make_middle();
    for (long i = first; i < LARGES; i += THREADS) large[i] = make_large();
    for (long i = first; i < GROWNS; i += THREADS) grown[i] = grow(make_small());
    return NULL;
}

static void *drop(void *number) {
    long first = (long)number;
    for (long i = first; i < SMALLS / 2; i += THREADS) free(small[i]);
    for (long i = first; i < MIDDLES / 2; i += THREADS) free(middle[i]);
    for (long i = first; i < LARGES / 2; i += THREADS) free(large[i]);
    return NULL;
}

static void in_threads(void *(*function)(void *), long shift) {
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, function, (void *)((i + shift) % THREADS));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

static double mean;

/* Expects a figure within SIGMAS standard deviations. Each of n blocks is a sample with chance p, and a sample stands
 * for 1/p blocks. So the variance of the estimate is n(1-p)/p. One block is added to the standard deviation, because
 * the estimate is not normally distributed if hardly any block is missed. 8 bytes are added to the result, because the
 * report rounds each site. */
static void expect(const char *function, const char *what, double bytes, double blocks) {
    double size = bytes / blocks, p = -expm1(-size / mean), off = SIGMAS * (sqrt(blocks * (1 - p) / p) + 1) * size + 8;
    say("expect sites[stack[0].function=%s].%s >= %.0f", function, what, bytes - off);
    say("expect sites[stack[0].function=%s].%s <= %.0f", function, what, bytes + off);
}

static void expect_all(const char *function, double size, double blocks, double live) {
    expect(function, "allocated_bytes", size * blocks, blocks);
    expect(function, "live_bytes", size * live, live);
}

int main(void) {
    const char *mode = getenv("MEMSTOW_STACKS");
    mean = mode ? atof(mode + strlen("sample:")) : 1;
    in_threads(work, 0);
    in_threads(drop, 1);
    char *p = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    pid_t child = fork();
    if (!child) {
        for (int i = 0; i < SMALLS; i++) small[i] = make_small(); /* the parent's are inherited */
        return 0;
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    expect_all("make_middle", MIDDLE, MIDDLES, MIDDLES / 2);
    expect_all("make_large", LARGE, LARGES, LARGES / 2);
    /* The blocks that `grow` resized came from another call of make_small. This call holds no memory any more, so the
     * report leaves it out. */
    expect_all("make_small", SMALL, SMALLS, SMALLS / 2);
    expect_all("grow", GROWN, GROWNS, GROWNS);
    EXPECT("sites[stack[0].function=main].live_bytes", MAPPED);
    EXPECT("sites[stack[0].function=main].error_bytes", 0);
    EXPECT("totals.mapped.live_bytes", MAPPED);
    uint64_t blocks = SMALLS + MIDDLES + LARGES + 2 * GROWNS;
    say("expect totals.host.allocated_blocks >= %llu", (unsigned long long)blocks);
    say("expect totals.host.allocated_blocks <= %llu", (unsigned long long)blocks + 40);
    blocks = SMALLS / 2 + MIDDLES / 2 + LARGES / 2 + GROWNS;
    say("expect totals.host.live_blocks >= %llu", (unsigned long long)blocks);
    say("expect totals.host.live_blocks <= %llu", (unsigned long long)blocks + 10);
    say("expect@%d totals.host.allocated_blocks >= %d", (int)child, SMALLS);
    say("expect@%d totals.host.allocated_blocks <= %d", (int)child, SMALLS + 10);
    say("expect@%d process.inherited.bytes_at_fork >= %d", (int)child, LARGES / 2 * LARGE);
    return 0;
}
