/* pairs.c — calls free and malloc N times, for sizes from 16 to 1,000 bytes, with 64 live blocks, for
 * tests/cost/instructions.py. In: N. Out: nothing. Only the allocator takes a considerable number of instructions. */
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
