# needs: cc stacks deb:libjemalloc2
"""Threads with the smallest allowed stack take the picture of a peak and fold call stacks. jemalloc's large
thread-local storage takes a part of this small stack. So memstow's functions that do this must not have large arrays on
the stack."""
import os

import support

FLAGS = ("-w", "-O1", "-pthread", "-fno-builtin", "-fno-optimize-sibling-calls", "-Wl,--no-as-needed",
         "-l:libjemalloc.so.2")
THREAD = r'''
int main(void) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (int i = 0; i < 20; i++) pthread_create(&thread, &small, work, 0), pthread_join(thread, 0);
    return 3;
}
'''

peaks = support.compile(r'''
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
static void *work(void *nothing) {
    void *volatile p;
    for (int i = 0; i < 1000; i++) p = malloc(i * 7 + 1), p = realloc(p, i * 9 + 2), free(p);
    munmap(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20);
    return nothing;
}
''' + THREAD, "peaks", flags=FLAGS)
for options in ([], ["--stacks=none"]):
    support.track(peaks, status=3, options=options)
    assert support.report()["totals"]["peak_bytes"] >= 1 << 20

folds = support.compile(r'''
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
__attribute__((noinline)) static void walk(int depth, unsigned long path) {
    if (!depth) {
        free(malloc(path % 7 + 1));
        return;
    }
    switch (path & 3) { /* four places that call */
    case 0: walk(depth - 1, path >> 2); __asm__ volatile("# 0" ::: "memory"); break;
    case 1: walk(depth - 1, path >> 2); __asm__ volatile("# 1" ::: "memory"); break;
    case 2: walk(depth - 1, path >> 2); __asm__ volatile("# 2" ::: "memory"); break;
    case 3: walk(depth - 1, path >> 2); __asm__ volatile("# 3" ::: "memory"); break;
    }
}
static void *work(void *nothing) {
    static unsigned long path;
    for (int i = 0; i < 20000; i++) walk(9, path++ * 7919);
    return nothing;
}
''' + THREAD, "folds", flags=FLAGS)
support.track(folds, status=3, env={**os.environ, "MEMSTOW_STACK_MEMORY": "4000000"})
report = support.report()
assert report["lost"]["folded"] > 10_000, report["lost"]
