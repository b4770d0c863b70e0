// A signal handler leaves by longjmp, thousands of times, at any moment in the library. (It does not leave while the
// allocator itself runs, because the allocator's lock would never be released.) Nothing stays locked: new stacks are
// recorded as before and as fast, and hardly any block is miscounted.
#include "stacks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

enum { JUMPS = 4000, SECONDS = 20, MICROSECONDS = 40, WAYS = 8, AFTER = 20000, SIZE = 24, SENTINEL = 100003 };

#ifndef DEPTH
#define DEPTH 7 /* 16 million stacks */
#define FOLDED_LEAST 0
#endif

static sigjmp_buf place;
static volatile sig_atomic_t may_jump, ended;
static volatile unsigned jumps;
static const char *library;

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
    STAY;
}

#define WAY(n)                                                                                                         \
    FRAME static void way##n(struct walk *walk) {                                                                      \
        onward(walk);                                                                                                  \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }
WAY(0)
WAY(1)
WAY(2)
WAY(3) WAY(4) WAY(5) WAY(6) WAY(7) static step *const ways[WAYS] = {way0, way1, way2, way3, way4, way5, way6, way7};

static void *allocate(uint64_t *state) {
    struct walk walk = {next_random(state), DEPTH, NULL};
    ways[next_random(&walk.state) % WAYS](&walk);
    return walk.block;
}

static bool is_in_library(const ucontext_t *context) {
    Dl_info info;
    return dladdr((void *)context->uc_mcontext.gregs[REG_RIP], &info) && info.dli_fbase == library;
}

static void on_timer(int number, siginfo_t *info, void *context) {
    (void)number, (void)info;
    if (!may_jump || !is_in_library(context)) return;
    may_jump = 0;
    jumps++;
    siglongjmp(place, 1);
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

/* Allocates and frees. The handler may jump out of an allocation, and each jump loses one block at most. */
static void be_left(uint64_t *state, double until) {
    sigsetjmp(place, 1);
    while (jumps < JUMPS && now() < until) {
        may_jump = 1;
        void *p = allocate(state);
        may_jump = 0;
        free(p);
    }
    may_jump = 0;
}

static void set_timer(int microseconds) {
    struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void *beside(void *unused) {
    uint64_t state = 99;
    while (!ended) free(allocate(&state));
    return unused;
}

/* Starts a thread that never gets the signal. */
static pthread_t start_thread(void) {
    pthread_t thread;
    sigset_t alarm, before;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &alarm, &before);
    MUST(pthread_create(&thread, NULL, beside, NULL) == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return thread;
}

FRAME static void *sentinel(void) {
    void *p = malloc(SENTINEL);
    STAY;
    return p;
}

int main(void) {
    Dl_info info;
    static void *volatile kept;
    static uint64_t state = 1;
    MUST(dladdr((void *)malloc, &info));
    library = strstr(info.dli_fname, "libmemstow") ? info.dli_fbase : NULL;
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    pthread_t thread = start_thread();
    set_timer(MICROSECONDS);
    if (library) be_left(&state, now() + SECONDS);
    set_timer(0);
    ended = 1;
    pthread_join(thread, NULL);
    MUST(!library || jumps > JUMPS / 20);
    double begin = now();
    for (int i = 0; i < AFTER; i++) free(allocate(&state));
    MUST(now() - begin < 5);
    kept = sentinel();
    if (!FOLDED_LEAST) EXPECT_STACK(SENTINEL, "sentinel<main");
    say("expect lost.folded >= %u", FOLDED_LEAST);
    say("expect totals.live_bytes < %u", SENTINEL + 65536 + jumps * SIZE);
    say("expect totals.live_blocks < %u", 200 + jumps);
    say("expect lost.frames < %u", 100 + jumps);
    MUST(kept);
    return 0;
}
