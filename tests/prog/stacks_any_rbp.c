// In code without frame pointers, rbp may have any value. Here it is -8 at each call of malloc. The calls come from a
// recursion, at many different depths.
// needs: stacks
// build: -O2 -fno-optimize-sibling-calls
#include "stacks.h"

#include <alloca.h>
#include <stddef.h>

enum { DEPTH = 1500, ROUNDS = 20, SIZE = 4321 };

void *with_index(size_t size);
__asm__(".text\n"
        ".globl with_index\n"
        ".type with_index, @function\n"
        "with_index:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 6, -16\n"
        "mov $-8, %rbp\n"
        "call malloc@PLT\n"
        "pop %rbp\n"
        ".cfi_def_cfa_offset 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size with_index, . - with_index\n");

/* Because of alloca, the CFA of this function is found by rbp. */
FRAME static void *bottom(size_t size) {
    char *volatile room = alloca(size % 64 + 16);
    room[0] = 1;
    void *p = with_index(size);
    STAY;
    return p;
}

FRAME static void *deep(int depth) {
    void *p = depth ? deep(depth - 1) : bottom(SIZE);
    STAY;
    return p;
}

int main(void) {
    for (int round = 0; round < ROUNDS; round++)
        for (int depth = 0; depth < DEPTH; depth++) free(deep(depth));
    void *volatile kept = deep(3);
    MUST(kept);
    EXPECT("sites[stack[1].function=bottom].live_bytes", SIZE);
    return 0;
}
