# timeout: 200
"""mprotect, and munmap of single pages, cut mappings into more pieces than there are records. Bytes are exact, or
counted as lost. Unmapping all pieces takes little time."""
import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
enum { PAGE = 4096 };
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(int count, char **arguments) {
    long pages = atol(arguments[1]), refused = 0;
    double start = now();
    char *p = mmap(0, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (long i = 0; i < pages; i += 2) /* the kernel stops it at vm.max_map_count pieces */
        refused += mprotect(p + i * PAGE, PAGE, i % 4 ? PROT_READ : PROT_NONE) != 0;
    double split = now();
    if (count > 2) { /* the unused end of the heap keeps its record, everything else goes */
        int result = munmap(p, pages * PAGE);
        fprintf(stderr, "munmap %d, %.2f s\n", result, now() - split);
        mmap(0, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    fprintf(stderr, "%ld refused, split in %.2f s\n", refused, split - start);
    printf("%s\n", refused ? "refused" : "fine");
    return 0;
}
''', "pieces", flags=("-w", "-O1"))
PAGE = 4096
for pages, expected in ((20_000, "exact"), (64_000, "exact"), (150_000, "counted")):
    for drop in ([], ["drop"]):
        alone = support.run(program, pages, *drop, timeout=60)
        tracked = support.track(program, pages, *drop, timeout=60)
        assert alone.stdout == tracked.stdout, (pages, drop)
        report = support.report()
        mapped, lost = report["totals"]["mapped"], report["lost"]["mappings"]
        print(pages, *drop, tracked.stderr.split("\n")[:-1], "alone:", alone.stderr.split("\n")[:-1],
              mapped["live_bytes"], mapped["reserved_bytes"], "lost", lost)
        if drop:
            assert mapped["live_bytes"] == 5 * PAGE and mapped["reserved_bytes"] == 0, (pages, mapped, lost)
        else:
            assert mapped["live_bytes"] + mapped["reserved_bytes"] == pages * PAGE, (pages, mapped, lost)
        if expected == "exact":
            assert lost == 0 and (drop or mapped["reserved_bytes"] == pages // 4 * PAGE), (pages, mapped, lost)
