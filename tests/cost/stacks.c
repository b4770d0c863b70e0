/* stacks.c — calls free and malloc N times at the end of a call stack of some thirty frames, for
 * tests/cost/instructions.py. In: the kind of stacks, and N. "leaf": each call of malloc has the same stack. "join":
 * the calls have 4,096 stacks in turn, which are more than the leaf cache has room for. After the first turn all these
 * stacks are known, and most of them differ from the stack before only in the innermost call. "new": each call has a
 * new stack. Out: nothing. The program does the same work in all three cases. */
#include <stdlib.h>
#include <string.h>

enum { OUTER = 20, LEVELS = 6, KNOWN = 4096 };

static void *volatile blocks[64];

/* The assembler comments keep the compiler from merging the calls, and from turning the last call into a jump. */
#define WAY(n)                                                                                                         \
    case n:                                                                                                            \
        block = descend(path, level - 1, size);                                                                        \
        __asm__ volatile("# way " #n : "+r"(block));                                                                   \
        break;

/* Three bits of the path choose the call at each level; the lowest bits are for the innermost level. */
__attribute__((noinline, noclone)) static void *descend(long path, int level, size_t size) {
    void *block = NULL;
    if (level == 0) return malloc(size);
    switch (path >> 3 * (level - 1) & 7) { WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7) }
    return block;
}

__attribute__((noinline, noclone)) static void work(int depth, long rounds, long mask) {
    if (depth)
        work(depth - 1, rounds, mask);
    else
        for (long i = 0; i < rounds; i++) {
            free(blocks[i & 63]);
            blocks[i & 63] = descend(i & mask, LEVELS, 16 + (i * 40) % 985);
        }
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    work(OUTER, atol(argv[2]), !strcmp(argv[1], "leaf") ? 0 : !strcmp(argv[1], "join") ? KNOWN - 1 : -1);
    return 0;
}
