// realloc keeps contents, counts old and new block, fails without harm, and frees at size 0, for every kind of block.
// run:
// run: --allocator=mimalloc
#include "expect.h"

#include <errno.h>
#include <malloc.h>
#include <stdint.h>

static void fill(unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(i * 7 + 3);
}

static void check(const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) MUST(p[i] == (unsigned char)(i * 7 + 3));
}

static void *grow_and_shrink(void *p, size_t size) {
    static const size_t steps[] = {100, 5000, 65535, 65536, 300000, 4096, 65536, 1, 24};
    fill(p, size);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        p = realloc(p, steps[i]);
        MUST(p);
        check(p, size < steps[i] ? size : steps[i]);
        size = steps[i];
        fill(p, size);
    }
    return p;
}

int main(void) {
    void *small = grow_and_shrink(malloc(7), 7), *large = grow_and_shrink(malloc(1 << 20), 1 << 20);
    void *aligned = grow_and_shrink(memalign(256, 900), 900), *bare = grow_and_shrink(memalign(4096, 9000), 9000);
    void *block = malloc(1000), *big = malloc(100000);
    fill(block, 1000), fill(big, 100000);
    errno = 0;
    MUST(realloc(block, PTRDIFF_MAX) == NULL && errno == ENOMEM);
    MUST(realloc(big, PTRDIFF_MAX / 2) == NULL);
    check(block, 1000), check(big, 100000);
    MUST(realloc(malloc(50), 0) == NULL);
    MUST(realloc(malloc(500000), 0) == NULL);
    MUST(small && large && aligned && bare);
    EXPECT("totals.host.live_bytes", 4 * 24 + 1000 + 100000);
    EXPECT("totals.host.live_blocks", 6);
    EXPECT("large_blocks.length", 1);
    return 0;
}
