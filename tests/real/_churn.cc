/* Everything that comes and goes in a program, at random and at the same time: threads, coroutines and their stacks,
 * libraries, children, signals, exceptions, deep recursion, and blocks that wander between all of these.
 *
 * _churn SECONDS CHILDREN LIBRARY… It writes three lines, and waits for an answer after each. "warm": each thing has
 * been done once. "quiet": the program holds no block of its own. "final BYTES BLOCKS": it holds exactly
 * these bytes and blocks. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../prog/coroutine.h"

#define FRAME __attribute__((noipa))
#define STAY __asm__ volatile("" ::: "memory")

enum { THREADS = 3, SLOTS = 600, LIBRARIES = 8, COROUTINES = 12, STACK = 1 << 17, BIG = 70000 };
enum { PLAIN, LIBRARY, COROUTINE, SIGNAL, ALTERNATE, EXCEPTION, DEEP, KINDS };

/* The present task, passed down to the allocation. */
struct job {
    uint64_t random;
    int kind, outer, inner;
    size_t size;
    void *block; /* in and out */
};

struct slot {
    bool held;
    void *block;
    size_t size;
};
static struct slot slots[SLOTS];

static struct library {
    bool held;
    const char *path;
    void *handle;
} libraries[LIBRARIES];
static int library_count;

struct coroutine {
    void *at, *back;
    char *stack;
    bool mapped;
    struct job *job;
};

/* The data of one thread. */
struct worker {
    struct coroutine coroutines[COROUTINES];
    struct job *signalled;
    char *alternate;
};
static __thread struct worker *self;

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void must(bool is_so, const char *what) {
    if (is_so) return;
    fprintf(stderr, "churn: %s\n", what);
    _exit(2);
}

/* --- at the inner end: the block is freed, resized or made --- */

FRAME static void *aligned(size_t size) {
    void *p = NULL;
    must(posix_memalign(&p, 64, size) == 0, "posix_memalign");
    return p;
}

FRAME static void leaf(struct job *job) {
    switch (next_random(&job->random) % 8) {
    case 0:
        job->block = realloc(job->block, job->size);
        break;
    case 1:
        free(job->block);
        job->block = calloc(1, job->size);
        break;
    case 2:
        free(job->block);
        job->block = aligned(job->size);
        break;
    default:
        free(job->block);
        job->block = malloc(job->size);
    }
    must(job->block, "no memory");
    STAY;
}

/* --- the way to leaf(): a random walk of calls, then middle(), which does what the job says, then another walk --- */

typedef void step(struct job *job);
extern step *const inner_ways[8], *const outer_ways[8];

FRAME static void inner(struct job *job) {
    if (job->inner-- > 0)
        inner_ways[next_random(&job->random) % 8](job);
    else
        leaf(job);
    STAY;
}

static void middle(struct job *job);

FRAME static void outer(struct job *job) {
    if (job->outer-- > 0)
        outer_ways[next_random(&job->random) % 8](job);
    else
        middle(job);
    STAY;
}

#define WAY(n)                                                                                                         \
    FRAME static void inner##n(struct job *job) {                                                                      \
        inner(job);                                                                                                    \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }                                                                                                                  \
    FRAME static void outer##n(struct job *job) {                                                                      \
        outer(job);                                                                                                    \
        __asm__ volatile("" ::"i"(n) : "memory");                                                                      \
    }
WAY(0)
WAY(1)
WAY(2)
WAY(3) WAY(4) WAY(5) WAY(6)
    WAY(7) step *const inner_ways[8] = {inner0, inner1, inner2, inner3, inner4, inner5, inner6, inner7};
step *const outer_ways[8] = {outer0, outer1, outer2, outer3, outer4, outer5, outer6, outer7};

/* --- what middle() does --- */

typedef void library_call(void (*back)(void *), void *argument);

static void back_from_library(void *job) { inner((struct job *)job); }

FRAME static void in_library(struct job *job) {
    struct library *library = &libraries[next_random(&job->random) % (unsigned)library_count];
    if (__atomic_exchange_n(&library->held, true, __ATOMIC_ACQUIRE)) return inner(job);
    if (!library->handle) library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    must(library->handle, "dlopen");
    ((library_call *)dlsym(library->handle, "churn_call"))(back_from_library, job);
    if (next_random(&job->random) % 8 == 0) {
        dlclose(library->handle);
        library->handle = NULL;
    }
    __atomic_store_n(&library->held, false, __ATOMIC_RELEASE);
}

/* A coroutine begins without an argument, so it reads here which coroutine it is. */
static __thread struct coroutine *resumed;

FRAME static void run_coroutine(void) {
    struct coroutine *coroutine = resumed;
    for (;;) {
        inner(coroutine->job);
        exchange(&coroutine->at, coroutine->back);
    }
}

static void end_coroutine(struct coroutine *coroutine) {
    if (!coroutine->stack) return;
    if (coroutine->mapped)
        munmap(coroutine->stack, STACK);
    else
        free(coroutine->stack);
    coroutine->stack = NULL;
}

FRAME static void in_coroutine(struct job *job) {
    struct coroutine *coroutine = &self->coroutines[next_random(&job->random) % COROUTINES];
    if (next_random(&job->random) % 32 == 0) end_coroutine(coroutine);
    if (!coroutine->stack) {
        coroutine->mapped = next_random(&job->random) % 2;
        coroutine->stack = coroutine->mapped
                               ? (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                               : (char *)malloc(STACK);
        must(coroutine->stack && coroutine->stack != MAP_FAILED, "no stack");
        coroutine->at = begin_function(coroutine->stack + STACK, run_coroutine);
    }
    coroutine->job = job;
    resumed = coroutine;
    exchange(&coroutine->back, coroutine->at);
    STAY;
}

static void on_signal(int number) {
    (void)number;
    inner(self->signalled);
    STAY;
}

FRAME static void in_handler(struct job *job) {
    self->signalled = job;
    pthread_kill(pthread_self(), job->kind == ALTERNATE ? SIGUSR2 : SIGUSR1);
    STAY;
}

FRAME static void throws(struct job *job) {
    inner(job);
    throw job;
}

FRAME static void in_catch(struct job *job) {
    try {
        throws(job);
    } catch (struct job *) {
        free(malloc(job->size));
    }
}

FRAME static void deep(struct job *job, int depth) {
    if (depth)
        deep(job, depth - 1);
    else
        inner(job);
    STAY;
}

static void middle(struct job *job) {
    switch (job->kind) {
    case LIBRARY:
        return in_library(job);
    case COROUTINE:
        return in_coroutine(job);
    case SIGNAL:
    case ALTERNATE:
        return in_handler(job);
    case EXCEPTION:
        return in_catch(job);
    case DEEP:
        return deep(job, (int)(next_random(&job->random) % 1000));
    default:
        return inner(job);
    }
}

/* --- threads --- */

static void do_one(struct slot *slot, uint64_t *random, int kind) {
    size_t size = next_random(random) % 256 ? 1 + next_random(random) % 300 : BIG;
    struct job job = {next_random(random), kind, 2, 2, size, slot->block};
    outer(&job);
    slot->block = job.block;
    slot->size = size;
}

static struct worker *begin_worker(void) {
    struct worker *worker = (struct worker *)calloc(1, sizeof *worker);
    worker->alternate = (char *)malloc(STACK);
    stack_t stack = {};
    stack.ss_sp = worker->alternate;
    stack.ss_size = STACK;
    sigaltstack(&stack, NULL);
    return worker;
}

static void end_worker(struct worker *worker) {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, NULL);
    for (int i = 0; i < COROUTINES; i++) end_coroutine(&worker->coroutines[i]);
    free(worker->alternate);
    free(worker);
}

static double deadline;

/* A worker thread. It ends after a while, and another worker takes its place. */
static void *work(void *seed) {
    uint64_t random = (uint64_t)(uintptr_t)seed * 0x9E3779B97F4A7C15u | 1;
    self = begin_worker();
    for (uint64_t left = 1000 + next_random(&random) % 30000; left && now() < deadline; left--) {
        struct slot *slot = &slots[next_random(&random) % SLOTS];
        int kind = (int)(next_random(&random) % (KINDS + 6));
        if (__atomic_exchange_n(&slot->held, true, __ATOMIC_ACQUIRE)) continue;
        do_one(slot, &random, kind < KINDS ? kind : PLAIN);
        __atomic_store_n(&slot->held, false, __ATOMIC_RELEASE);
    }
    end_worker(self);
    return NULL;
}

/* Forks. The child becomes another program, or allocates and frees blocks of its own. */
static void have_child(uint64_t random) {
    pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        if (random % 2) execl("/bin/true", "true", (char *)NULL);
        self = begin_worker();
        struct slot mine = {};
        for (int i = 0; i < 2000; i++) do_one(&mine, &random, i % 2 ? PLAIN : DEEP);
        free(mine.block);
        _exit(0);
    }
    int status;
    must(waitpid(child, &status, 0) == child && status == 0, "the child failed");
}

static void let_them_work(double seconds, int children) {
    pthread_t threads[THREADS];
    uintptr_t seed = 1;
    double begin = now(), next_child = begin;
    deadline = begin + seconds;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)seed++);
    for (int i = 0; now() < deadline; i = (i + 1) % THREADS) {
        pthread_join(threads[i], NULL);
        pthread_create(&threads[i], NULL, work, (void *)seed++);
        if (children && now() > next_child) have_child(seed * 77777), next_child += seconds / children;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* --- what is said about it --- */

static void let_look(const char *what) {
    char answer;
    must(write(STDOUT_FILENO, what, strlen(what)) > 0 && read(STDIN_FILENO, &answer, 1) == 1, "nobody looks");
}

static void free_all(void) {
    for (int i = 0; i < SLOTS; i++) {
        free(slots[i].block);
        slots[i].block = NULL;
    }
    for (int i = 0; i < library_count; i++) {
        if (libraries[i].handle) dlclose(libraries[i].handle);
        libraries[i].handle = NULL;
    }
}

static void hold_some(void) {
    char line[64];
    uint64_t random = 12345, bytes = 0;
    self = begin_worker();
    for (int i = 0; i < SLOTS; i++) do_one(&slots[i], &random, i % KINDS);
    end_worker(self);
    for (int i = 0; i < library_count; i++) {
        if (libraries[i].handle) dlclose(libraries[i].handle);
        libraries[i].handle = NULL;
    }
    for (int i = 0; i < SLOTS; i++) bytes += slots[i].size;
    snprintf(line, sizeof line, "final %llu %d\n", (unsigned long long)bytes, SLOTS);
    let_look(line);
}

int main(int argc, char **argv) {
    struct sigaction action = {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    for (int i = 3; i < argc && library_count < LIBRARIES; i++) libraries[library_count++].path = argv[i];
    let_them_work(0.3, 1);
    free_all();
    let_look("warm\n");
    let_them_work(atof(argv[1]), atoi(argv[2]));
    free_all();
    let_look("quiet\n");
    hold_some();
    return 0;
}
