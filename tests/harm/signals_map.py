"""A signal handler maps memory, unmaps it and calls madvise at a high rate. It interrupts threads that do the same.
(These are plain system calls, which handlers may make.) At the end, the totals are exact."""
import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>
enum { PAGE = 4096, THREADS = 3, ROUNDS = 15000 };
static volatile long handled;
static char *map(int pages) {
    char *p = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) abort();
    return p;
}
static void handle(int number) {
    char *p = map(5);
    p[0] = 1;
    madvise(p, 2 * PAGE, MADV_DONTNEED);
    munmap(p + PAGE, PAGE);
    munmap(p, PAGE);
    munmap(p + 2 * PAGE, 3 * PAGE);
    __atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}
static void *work(void *kept) {
    for (int i = 0; i < ROUNDS; i++) {
        char *p = map(4);
        madvise(p + PAGE, PAGE, MADV_FREE);
        char *q = mremap(p, 4 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
        munmap(q + 2 * PAGE, PAGE);
        munmap(q, 2 * PAGE);
        munmap(q + 3 * PAGE, 3 * PAGE);
        void *volatile b = malloc(i % 3000);
        free(b);
    }
    *(void **)kept = malloc(1000);
    return map(2);
}
int main(void) {
    pthread_t threads[THREADS];
    static void *kept[THREADS];
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}};
    sigaction(SIGPROF, &action, 0), sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_PROF, &often, 0), setitimer(ITIMER_REAL, &often, 0);
    for (int t = 0; t < THREADS; t++) pthread_create(&threads[t], 0, work, &kept[t]);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
    setitimer(ITIMER_PROF, &(struct itimerval){0}, 0), setitimer(ITIMER_REAL, &(struct itimerval){0}, 0);
    fprintf(stderr, "%ld\n", handled);
    return handled < 20;
}
''', "signals", flags=("-w", "-O1", "-pthread", "-fno-builtin"))
for round in range(4):
    handled = support.track(program).stderr.strip()
    report = support.report()
    mapped, lost = report["totals"]["mapped"], report["lost"]
    module = [m for m in report["modules"] if m["module"] == str(program)][0]
    print(handled, "handlers;", mapped["allocated_blocks"], "mappings;", lost["mappings"], "events lost")
    assert lost["mappings"] == 0, lost
    assert (mapped["live_bytes"], mapped["live_blocks"]) == (3 * 8192, 3), mapped
    assert (module["live_bytes"], module["live_blocks"]) == (3 * 8192 + 3000, 6), module
    assert len(report["mappings"]) == 3 if "mappings" in report else True
