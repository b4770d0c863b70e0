// A picture of the peak is taken in several steps after memory has fallen. A block of the peak is in the picture even
// if the block is resized between the steps, or is freed when new blocks have nearly reached the peak again.
#include "expect.h"
#include "many_stacks.h"

enum { MIB = 1 << 20 };
static void **fallen, *resized, *gone, *come;

int main(void) {
    allocate_small();
    resized = malloc(8 * MIB);
    gone = malloc(12 * MIB);
    fallen = malloc(24 * MIB);
    free(fallen);
    resized = realloc(resized, 10 * MIB);
    come = malloc(20 * MIB);
    free(gone);
    const long peak = (long)SMALL * STACKS + 44L * MIB;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect peak.picture_bytes >= %ld", peak - MIB);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    return 0;
}
