/* paths STACKS BLOCKS_EACH [wait]: a program that allocates from STACKS call stacks, and keeps BLOCKS_EACH blocks of
 * each. The stacks are some thirty frames deep and differ in the innermost seven. With "wait" the program says when it
 * is ready, and waits for a line. It ends by _exit, so that all blocks are still live at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OUTER = 20, LEVELS = 7 };

static void **blocks; /* a list: each block points to the block before it */

static void keep(long number, long each) {
    for (long k = 0; k < each; k++) {
        void **block = malloc(16 + (size_t)(number * 7 + k) % 112);
        if (!block) _exit(1);
        *block = blocks;
        blocks = block;
    }
}

static void descend(long number, int level, long each);

/* Each way is a function of its own, so each way makes another call stack. The assembler comment after the call keeps
 * the compiler from turning the call into a jump, which would leave no frame of the way on the stack. */
#define WAY(n)                                                                                                         \
    __attribute__((noinline, noclone)) static void way##n(long number, int level, long each) {                         \
        descend(number, level, each);                                                                                  \
        __asm__ volatile("# way " #n);                                                                                 \
    }
/* clang-format off */
WAY(0) WAY(1) WAY(2) WAY(3) WAY(4) WAY(5) WAY(6) WAY(7)

/* Three bits of the number choose the way at each level. */
__attribute__((noinline, noclone)) static void descend(long number, int level, long each) {
    static void (*const ways[])(long, int, long) = {way0, way1, way2, way3, way4, way5, way6, way7};
    if (level)
        ways[number >> 3 * (level - 1) & 7](number, level - 1, each);
    else
        keep(number, each);
    __asm__ volatile("");
}
/* clang-format on */

__attribute__((noinline, noclone)) static void work(int depth, long stacks, long each) {
    if (depth)
        work(depth - 1, stacks, each);
    else
        for (long i = 0; i < stacks; i++) descend(i, LEVELS, each);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    char answer;
    if (argc < 3) return 2;
    work(OUTER, atol(argv[1]), atol(argv[2]));
    if (argc > 3 && (write(STDOUT_FILENO, "ready\n", 6) != 6 || read(STDIN_FILENO, &answer, 1) < 0)) return 1;
    _exit(0);
}
