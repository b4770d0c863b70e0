// A picture of the peak that takes several steps has a block of the peak although it was resized meanwhile, or was
// freed after as many bytes had come as were freed before.
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
