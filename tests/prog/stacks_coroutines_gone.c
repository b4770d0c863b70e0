// What a thread remembers of a coroutine's stack may be wrong. Reading call stacks must do no harm then, and must give
// the right stacks. The test makes these cases:
// - The stack is freed in the middle of the coroutine.
// - Another coroutine uses the freed memory at once.
// - A stack of another size is made at the same address.
// - Another thread resumes the coroutine.
// The stacks are mapped or come from malloc.
// needs: stacks
// build: -O2
// timeout: 300
#include "stacks.h"

#include <pthread.h>
#include <sys/mman.h>

#include "coroutine.h"

enum { THREADS = 3, COROUTINES = 40, ROUNDS = 30000, KEEP_EACH = 500, KEPT = 256 };
enum { CLIMBED = 10007, LATER = 10037, IN_THREAD = 10039 };

static struct coroutine {
    int taken;
    void *at, *back; /* its own stack pointer, and that of the code that resumed it */
    char *stack;
    size_t size;
    bool mapped;
    uint64_t random;
} coroutines[COROUTINES];

static __thread struct coroutine *starting;
static void *kept[KEPT];

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

/* One of many blocks is kept for a while, or to the end. */
FRAME static void allocate(unsigned size) {
    static unsigned turn;
    unsigned n = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
    void *p = malloc(size);
    if (n % KEEP_EACH == 0) p = __atomic_exchange_n(&kept[n / KEEP_EACH % KEPT], p, __ATOMIC_ACQ_REL);
    free(p);
    STAY;
}

/* --- the coroutines --- */

FRAME static void suspend(struct coroutine *self) {
    exchange(&self->at, self->back);
    STAY;
}
FRAME static void later(void) {
    allocate(LATER);
    STAY;
}
FRAME static void climb(struct coroutine *self, unsigned depth) {
    volatile char *room = __builtin_alloca(16 + next_random(&self->random) % 200);
    room[0] = 1;
    if (depth) climb(self, depth - 1);
    allocate(CLIMBED);
    if (next_random(&self->random) % 8 == 0) {
        suspend(self);
        later();
    }
    STAY;
}
FRAME static void coroutine(void) {
    struct coroutine *self = starting;
    for (;;) climb(self, (unsigned)(next_random(&self->random) % 24));
}

static void begin(struct coroutine *self, uint64_t random) {
    self->random = random | 1;
    self->size = (size_t)32768 << random % 3;
    self->mapped = random >> 8 & 1;
    self->stack = self->mapped ? mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                               : malloc(self->size + 16 * (random >> 16 & 63));
    MUST(self->stack && self->stack != MAP_FAILED);
    self->at = begin_function(self->stack + self->size, coroutine);
}
static void end(struct coroutine *self) {
    if (self->mapped)
        munmap(self->stack, self->size);
    else
        free(self->stack);
    self->stack = NULL;
}

FRAME static void in_thread(void) {
    allocate(IN_THREAD);
    STAY;
}
FRAME static void *work(void *seed) {
    uint64_t random = (uintptr_t)seed * 0x9E3779B97F4A7C15u;
    for (int i = 0; i < ROUNDS; i++) {
        struct coroutine *self = &coroutines[next_random(&random) % COROUTINES];
        if (__atomic_exchange_n(&self->taken, 1, __ATOMIC_ACQUIRE)) continue;
        if (self->stack && next_random(&random) % 16 == 0) end(self);
        if (!self->stack) begin(self, next_random(&random));
        starting = self;
        exchange(&self->back, self->at);
        __atomic_store_n(&self->taken, 0, __ATOMIC_RELEASE);
        if (i % 4 == 0) in_thread();
    }
    STAY;
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    EXPECT_STACK(CLIMBED, "allocate<climb<...<coroutine<.");
    EXPECT_STACK(LATER, "allocate<later<climb<...<coroutine<.");
    EXPECT_STACK(IN_THREAD, "allocate<in_thread<work<...");
    return 0;
}
