// Call stacks of threads: of many at once, of threads with a given stack, of destructors of thread-specific data, and
// of a thread that clone makes without libc.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    THREADS = 8,
    STACK = 1 << 18,
    WORK = 10007,
    OWN_STACK = 10037,
    DESTRUCTOR = 10039,
    CLONED = 10061,
    AFTER = 10067
};

static pthread_key_t key;
static volatile int one = 1;

FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}
FRAME static void descend(unsigned depth, unsigned size) {
    volatile char room[40] = {0};
    if (depth)
        descend(depth - 1, size);
    else
        allocate(size);
    room[0] = room[1];
}

/* Allocates again and again, and once from `n` calls deeper. Each thread has another `n`, so a stack that is remembered
 * for one thread is wrong for another. */
static void *work(void *number) {
    unsigned n = (unsigned)(uintptr_t)number;
    for (unsigned i = 0; i < 2000; i++) {
        void *volatile block = malloc(i % 13 + 1);
        free(block);
        if (i == 1000) descend(n, WORK + 2 * n);
    }
    STAY;
    return NULL;
}

FRAME static void in_destructor(void) {
    allocate(DESTRUCTOR);
    STAY;
}
static void destroy(void *value) {
    (void)value;
    in_destructor();
    STAY;
}
static void *with_destructor(void *unused) {
    pthread_setspecific(key, &key);
    return unused;
}

static void *on_own_stack(void *unused) {
    descend(2, OWN_STACK);
    STAY;
    return unused;
}

static int cloned(void *unused) {
    (void)unused;
    descend(3, CLONED);
    STAY;
    return 0;
}

static void *new_stack(void) {
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack != MAP_FAILED);
    return stack;
}

/* The new thread uses this thread's thread-local memory, so this thread waits in the kernel until the new one ends. */
FRAME static void clone_and_wait(void) {
    static volatile pid_t alive = 1;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
    MUST(clone(cloned, (char *)new_stack() + STACK, flags, NULL, NULL, NULL, &alive) > 0);
    while (alive) syscall(SYS_futex, &alive, FUTEX_WAIT, 1, NULL, NULL, 0);
    STAY;
}
FRAME static void after(void) {
    KEEP(AFTER);
    STAY;
}

static void run(void *(*function)(void *), void *stack) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack) MUST(pthread_attr_setstack(&attributes, stack, STACK) == 0);
    MUST(pthread_create(&thread, &attributes, function, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(void) {
    pthread_t threads[THREADS];
    MUST(pthread_key_create(&key, destroy) == 0);
    for (uintptr_t i = 0; i < THREADS; i++) MUST(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    run(on_own_stack, new_stack());
    run(with_destructor, NULL);
    clone_and_wait();
    after();
    for (unsigned i = 0; i < THREADS; i++) say("expect stack %u allocate<descend{%u}<work<*<*<.", WORK + 2 * i, i + 1);
    EXPECT_STACK(OWN_STACK, "allocate<descend{3}<on_own_stack<*<*<.");
    EXPECT_STACK(DESTRUCTOR, "allocate<in_destructor<destroy<...<.");
    EXPECT_STACK(CLONED, "allocate<descend{4}<cloned<*<.");
    EXPECT_STACK(AFTER, "after<main");
    return one - 1;
}
