/* pairs.c — N times free and malloc, sizes 16 to 1,000 bytes, 64 blocks alive: what tests/cost/instructions.py counts.
 * What flows in: N. What flows out: nothing. Nothing but the allocator is worth an instruction here. */
#include <stdlib.h>

int main(int argc, char **argv) {
    static void *volatile blocks[64];
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < rounds; i++) {
        free(blocks[i & 63]);
        blocks[i & 63] = malloc(16 + (i * 40) % 985);
    }
    return 0;
}
