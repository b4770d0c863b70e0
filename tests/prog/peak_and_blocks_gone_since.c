// A picture of the peak that takes several steps: a block of the peak is in it though it was resized meanwhile, or
// freed when others had come, as large as what was freed before.
#include "expect.h"

enum { MIB = 1 << 20, LEVELS = 13, STACKS = 1 << LEVELS };
static void *small[STACKS], *fallen, *resized, *gone, *come;

__attribute__((noinline)) static void allocate(int level, unsigned path, void **to) {
    if (level == LEVELS)
        *to = malloc(32);
    else if (path >> level & 1)
        allocate(level + 1, path, to);
    else
        allocate(level + 1, path, to);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

int main(void) {
    for (unsigned i = 0; i < STACKS; i++) allocate(0, i, &small[i]);
    resized = malloc(8 * MIB);
    gone = malloc(12 * MIB);
    fallen = malloc(24 * MIB);
    free(fallen);
    resized = realloc(resized, 10 * MIB);
    come = malloc(20 * MIB);
    free(gone);
    const long peak = 32L * STACKS + 44L * MIB;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect peak.picture_bytes >= %ld", peak - MIB);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    return 0;
}
