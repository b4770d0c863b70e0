// Call stacks where a call is a jump. The function that jumped is not on the stack, and no other function is in its
// place.
// needs: stacks
// build: -O2 -foptimize-sibling-calls
#include "stacks.h"

enum { ONCE = 10007, TWICE = 10009, BY_POINTER = 10037, TO_MALLOC = 10039 };

static volatile int one = 1;

FRAME static void inner(int size) {
    KEEP(size);
    STAY;
}
FRAME static void jumps(int size) { inner(size * one); }
FRAME static void jumps_twice(int size) { jumps(size * one); }
FRAME static void outer(int size) {
    jumps(size * one);
    STAY;
}
FRAME static void outer_twice(int size) {
    jumps_twice(size * one);
    STAY;
}

static void (*volatile pointer)(int) = inner;
FRAME static void jumps_by_pointer(int size) { pointer(size * one); }
FRAME static void outer_by_pointer(int size) {
    jumps_by_pointer(size);
    STAY;
}

/* malloc is reached by a jump: its caller is our caller. */
FRAME static void *allocate(size_t size) { return malloc(size * (size_t)one); }
FRAME static void outer_of_malloc(size_t size) {
    stacks_kept[60] = allocate(size);
    STAY;
}

int main(void) {
    outer(ONCE);
    outer_twice(TWICE);
    outer_by_pointer(BY_POINTER);
    outer_of_malloc(TO_MALLOC);
    EXPECT_STACK(ONCE, "inner<outer<main");
    EXPECT_STACK(TWICE, "inner<outer_twice<main");
    EXPECT_STACK(BY_POINTER, "inner<outer_by_pointer<main");
    EXPECT_STACK(TO_MALLOC, "outer_of_malloc<main");
    return 0;
}
