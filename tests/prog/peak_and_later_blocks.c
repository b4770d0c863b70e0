// A picture of the peak that takes several steps, because there are many call stacks: what is allocated between them is
// not in it, whether it stays, goes or is resized; what was there at the same call stack is.
#include "expect.h"

enum { MIB = 1 << 20, LEVELS = 13, STACKS = 1 << LEVELS, LARGE = 24 * MIB };
static void *small[STACKS], *large[8];

__attribute__((noinline)) static void allocate(int level, unsigned path, void **to) {
    if (level == LEVELS)
        *to = malloc(32);
    else if (path >> level & 1)
        allocate(level + 1, path, to);
    else
        allocate(level + 1, path, to);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void *first, *later;
static const struct {
    void **block;
    size_t size;
} resized[] = {{&first, 8 * MIB}, {&later, 2 * MIB}, {&later, 3 * MIB}, {&later, 4 * MIB}};

int main(void) {
    for (unsigned i = 0; i < STACKS; i++) allocate(0, i, &small[i]);
    for (int i = 0; i < 4; i++) {
        if (i == 1) {
            large[0] = malloc(LARGE);
            large[1] = malloc(LARGE);
            free(large[0]);
        }
        *resized[i].block = realloc(*resized[i].block, resized[i].size);
    }
    large[2] = malloc(4 * MIB);
    large[3] = malloc(5 * MIB);
    free(large[2]);
    large[4] = malloc(6 * MIB);
    free(large[4]);
    large[5] = malloc(3 * MIB);
    const long peak = 32L * STACKS + 2L * LARGE + 8L * MIB;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect peak.picture_bytes >= %ld", peak - MIB);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    return 0;
}
