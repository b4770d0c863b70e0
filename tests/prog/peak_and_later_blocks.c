// A picture of the peak takes several steps, because there are many call stacks. Blocks that are allocated between the
// steps are not in it, whether they stay, go or are resized. Blocks that were allocated earlier at the same call stack
// are in it.
#include "expect.h"
#include "many_stacks.h"

enum { MIB = 1 << 20, LARGE = 24 * MIB };
static void **large[8];

static void *first, *later;
static const struct {
    void **block;
    size_t size;
} resized[] = {{&first, 8 * MIB}, {&later, 2 * MIB}, {&later, 3 * MIB}, {&later, 4 * MIB}};

int main(void) {
    allocate_small();
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
    const long peak = (long)SMALL * STACKS + 2L * LARGE + 8L * MIB;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect peak.picture_bytes >= %ld", peak - MIB);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    return 0;
}
