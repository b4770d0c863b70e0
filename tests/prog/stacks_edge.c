// Call stacks of a function that begins at the very end of its stack. According to the unwind tables, the function's
// return address lies beyond this end. At first there is foreign memory beyond the end, and later there is no memory.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <sys/mman.h>

#include "coroutine.h"

enum { STACK = 1 << 14, ON_EDGE = 10007, ALONE = 10009 };

void begin_on_edge(void);
__asm__(".text\n.globl begin_on_edge\n.type begin_on_edge,@function\n"
        "begin_on_edge: .cfi_startproc\n"
        "subq $16, %rsp\n.cfi_adjust_cfa_offset 16\n"
        "call on_edge\n"
        "ud2\n"
        ".cfi_endproc\n.size begin_on_edge, . - begin_on_edge");

static void *edge, *edge_back;
static char *beyond;

FRAME __attribute__((used)) void on_edge(void) {
    KEEP(ON_EDGE);
    KEEP(ON_EDGE);
    munmap(beyond, STACK);
    KEEP(ALONE);
    KEEP(ALONE);
    exchange(&edge, edge_back);
    MUST(0);
}
FRAME static void fall_off_the_edge(void) {
    char *stack = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack != MAP_FAILED);
    beyond = stack + STACK;
    exchange(&edge_back, begin_at(beyond, begin_on_edge));
}

int main(void) {
    fall_off_the_edge();
    EXPECT_STACK(ON_EDGE, "on_edge<begin_on_edge<.");
    EXPECT_STACK(ALONE, "on_edge<begin_on_edge<.");
    return 0;
}
