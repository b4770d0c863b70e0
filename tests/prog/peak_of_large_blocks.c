// Large blocks that were part of the highest total and are freed at once are in the picture of the peak. Blocks that
// are allocated after the highest total are not.
#include "expect.h"

enum { MIB = 1 << 20, BLOCKS = 20000, SIZE = 500, LARGE = 24 * MIB };
static void *blocks[BLOCKS], *large[3];

int main(void) {
    for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(SIZE);
    for (int i = 0; i < 3; i++) large[i] = malloc(LARGE);
    for (int i = 0; i < 3; i++) free(large[i]);
    for (int i = 0; i < 3; i++) {
        large[i] = malloc(LARGE / 2);
        free(large[i]);
    }
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    const long peak = (long)BLOCKS * SIZE + 3L * LARGE;
    say("expect totals.peak_bytes >= %ld", peak - MIB);
    say("expect totals.peak_bytes <= %ld", peak + MIB);
    say("expect peak.picture_bytes >= %ld", peak - 2 * MIB);
    say("expect peak.picture_bytes <= %ld", peak + MIB);
    say("expect peak.picture_blocks >= %ld", BLOCKS + 3 - 2L * MIB / SIZE);
    return 0;
}
