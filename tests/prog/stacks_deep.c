// Call stacks of 200,000 frames are whole, on the way down and on the way up again.
// timeout: 300
// needs: stacks
// build: -O2
#include "stacks.h"

#include <pthread.h>

enum { DEPTH = 200000, TOP = 10007, HALF = 10009, BOTTOM = 10037, UP = 10039 };

static volatile int one = 1;

FRAME static void allocate(unsigned size) {
    KEEP(size);
    STAY;
}
FRAME static void descend(unsigned depth) {
    if (depth == DEPTH / 2) allocate(HALF);
    if (depth > 1)
        descend(depth - 1);
    else
        allocate(BOTTOM);
    if (depth == DEPTH / 2 + 1) allocate(UP);
    STAY;
}
static void *deep(void *unused) {
    allocate(TOP);
    descend(DEPTH);
    STAY;
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    MUST(pthread_attr_setstacksize(&attributes, 64 << 20) == 0);
    MUST(pthread_create(&thread, &attributes, deep, NULL) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT_STACK(TOP, "allocate<deep");
    EXPECT_STACK(HALF, "allocate<descend{100001}<deep");
    EXPECT_STACK(BOTTOM, "allocate<descend{200000}<deep");
    EXPECT_STACK(UP, "allocate<descend{100000}<deep");
    return one - 1;
}
