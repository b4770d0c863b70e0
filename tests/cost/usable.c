/* usable.c — what redis does to a value, N times: asks for the usable size of a block and frees it, allocates another
 * one and asks for its usable size. The sizes are 16 to 1,000 bytes, and 64 blocks are live.
 * tests/cost/instructions.py links the program with jemalloc. In: N. Out: nothing. */
#include <malloc.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    static void *volatile blocks[64];
    static volatile size_t used;
    long rounds = argc > 1 ? atol(argv[1]) : 0;
    for (long i = 0; i < rounds; i++) {
        used -= malloc_usable_size(blocks[i & 63]);
        free(blocks[i & 63]);
        void *block = malloc(16 + (i * 40) % 985);
        used += malloc_usable_size(block);
        blocks[i & 63] = block;
    }
    return 0;
}
