# timeout: 200
"""Hundreds of thousands of page-aligned and large blocks are all counted, listed and found again, from several threads,
while the ledger grows through many pieces of address space."""
import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
enum { THREADS = 3, PAGES = 80000, LARGE = 40000 };
static void *pages[THREADS][PAGES], *large[THREADS][LARGE];
static void *work(void *argument) {
    long t = (long)argument;
    for (int i = 0; i < PAGES; i++) pages[t][i] = memalign(4096, 64);
    for (int i = 0; i < LARGE; i++) large[t][i] = malloc(65536);
    for (int i = 1; i < LARGE; i += 2) free(large[t][i]);
    for (int i = 1; i < PAGES; i += 2) free(pages[t][i]);
    return 0;
}
int main(void) {
    pthread_t threads[THREADS];
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    for (long t = 0; t < THREADS; t++) pthread_create(&threads[t], 0, work, (void *)t);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], 0);
    return 0;
}
''', "large", flags=("-w", "-O1", "-pthread", "-fno-builtin"))
support.track(program, timeout=150)
file = support.HERE / "out.mst"
report = support.report()
module = [m for m in report["modules"] if m["module"] == str(program)][0]
print("file:", file.stat().st_size, "lost:", report["lost"])
assert module["live_blocks"] == 3 * (40000 + 20000), module
assert module["live_bytes"] == 3 * (40000 * 64 + 20000 * 65536), module
assert report["lost"]["large_blocks"] == 0 and report["lost"]["file"] == 0, report["lost"]
