// Threads map, split, move and unmap at the same time, and a signal handler does so in the middle of that.
#include "expect.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>

enum { PAGE = 4096, ROUNDS = 4000, THREADS = 4 };

static char *map(size_t pages) {
    char *p = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED);
    return p;
}

static void interrupt(int number) {
    (void)number;
    munmap(map(3), 3 * PAGE);
}

static void *work(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        char *p = map(8);
        munmap(p + 2 * PAGE, PAGE);
        mprotect(p + 5 * PAGE, PAGE, PROT_NONE);
        char *q = mremap(p + 3 * PAGE, 2 * PAGE, 9 * PAGE, MREMAP_MAYMOVE);
        MUST(q != MAP_FAILED);
        munmap(q, 9 * PAGE);
        munmap(p, 2 * PAGE); /* the holes may have other mappings now */
        munmap(p + 5 * PAGE, 3 * PAGE);
    }
    return map(1);
}

int main(void) {
    pthread_t threads[THREADS];
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    setitimer(ITIMER_REAL, &never, NULL);
    EXPECT("totals.mapped.live_bytes", THREADS * PAGE);
    EXPECT("totals.mapped.live_blocks", THREADS);
    EXPECT("totals.mapped.reserved_bytes", 0);
    return 0;
}
