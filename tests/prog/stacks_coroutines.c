// Call stacks on stacks that the program made: swapcontext coroutines that take turns, a switch in assembly, and code
// that borrows another stack and returns. Frames of one stack are never seen on another.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <sys/mman.h>
#include <ucontext.h>

#include "coroutine.h"

enum {
    COROUTINES = 3,
    STACK = 1 << 17,
    FIRST = 10007,
    LATER = 10037,
    ON_MAIN = 10061,
    BORROWED = 10079,
    BY_HAND = 10091,
    AFTER = 10099
};

static ucontext_t main_context, contexts[COROUTINES];
static volatile unsigned size;
static unsigned current;

FRAME static void allocate(void) {
    KEEP(size);
    STAY;
}

static void *new_stack(void) {
    void *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stack != MAP_FAILED);
    return stack;
}

/* --- ucontext: each coroutine allocates at two depths, and in between the other coroutines run --- */

FRAME static void descend(unsigned depth) {
    if (depth) {
        descend(depth - 1);
    } else {
        size = FIRST, allocate();
        swapcontext(&contexts[current], &main_context);
        size = LATER, allocate();
    }
    STAY;
}
FRAME static void coroutine(void) {
    descend(4);
    swapcontext(&contexts[current], &main_context);
    MUST(0);
}
FRAME static void resume(unsigned which) {
    current = which;
    swapcontext(&main_context, &contexts[which]);
    STAY;
}
static void begin(ucontext_t *context) {
    getcontext(context);
    context->uc_stack = (stack_t){.ss_sp = new_stack(), .ss_size = STACK};
    makecontext(context, coroutine, 0);
}
FRAME static void take_turns(void) {
    for (unsigned i = 0; i < COROUTINES; i++) begin(&contexts[i]);
    for (unsigned i = 0; i < COROUTINES; i++) resume(i);
    size = ON_MAIN, allocate();
    for (unsigned i = COROUTINES; i-- > 0;) resume(i);
    STAY;
}

/* --- a function that calls another one on a borrowed stack; the caller's CFI leads back to the caller's stack --- */

void call_on_stack(void (*function)(void), void *top);
__asm__(".text\n.globl call_on_stack\n.type call_on_stack,@function\n"
        "call_on_stack: .cfi_startproc\n"
        "pushq %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "movq %rsp, %rbp\n.cfi_def_cfa_register %rbp\n"
        "movq %rsi, %rsp\n"
        "call *%rdi\n"
        "movq %rbp, %rsp\npopq %rbp\n.cfi_def_cfa %rsp, 8\n.cfi_restore %rbp\n"
        "ret\n.cfi_endproc\n.size call_on_stack, . - call_on_stack");
FRAME static void on_borrowed(void) {
    size = BORROWED, allocate();
    STAY;
}
FRAME static void borrow(void) {
    call_on_stack(on_borrowed, (char *)new_stack() + STACK);
    STAY;
}

/* --- a switch as libraries of coroutines have it --- */

static void *main_stack, *other_stack;
FRAME static void by_hand(void) {
    size = BY_HAND, allocate();
    exchange(&other_stack, main_stack);
    size = BY_HAND + 2, allocate();
    exchange(&other_stack, main_stack);
    MUST(0);
}
FRAME static void switch_by_hand(void) {
    exchange(&main_stack, begin_function((char *)new_stack() + STACK, by_hand));
    exchange(&main_stack, other_stack);
    STAY;
}

FRAME static void after(void) {
    KEEP(AFTER);
    STAY;
}

int main(void) {
    take_turns();
    borrow();
    switch_by_hand();
    after();
    EXPECT_STACK(FIRST, "allocate<descend{5}<coroutine<*<.");
    EXPECT_STACK(LATER, "allocate<descend{5}<coroutine<*<.");
    EXPECT_STACK(ON_MAIN, "allocate<take_turns<main");
    EXPECT_STACK(BORROWED, "allocate<on_borrowed<call_on_stack<?<borrow<main");
    EXPECT_STACK(BY_HAND, "allocate<by_hand<.");
    EXPECT_STACK(BY_HAND + 2, "allocate<by_hand<.");
    EXPECT_STACK(AFTER, "after<main");
    return 0;
}
