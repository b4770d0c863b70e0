// Call stacks after longjmp: the frames that longjmp has left are forgotten, and later calls are seen in their own
// places.
// needs: stacks
// build: -O2
#include "stacks.h"

#include <setjmp.h>
#include <signal.h>

enum { BEFORE = 10007, DEEP = 10009, AFTER = 10037, AGAIN = 10039, HANDLER = 10061, AFTER_HANDLER = 10067 };

static jmp_buf place;
static sigjmp_buf handler_place;
static volatile int one = 1;

FRAME static void before(void) {
    KEEP(BEFORE);
    STAY;
}
FRAME static void after(void) {
    KEEP(AFTER);
    STAY;
}
FRAME static void deep(int depth) {
    if (depth && one) deep(depth - 1);
    KEEP(DEEP);
    if (one) longjmp(place, 1);
}

/* Other frames in the place of the deep ones. */
FRAME static void again(int depth) {
    volatile char room[72] = {0};
    if (depth)
        again(depth - 1);
    else
        KEEP(AGAIN);
    room[0] = room[1];
    STAY;
}

FRAME static void jump(void) {
    before();
    if (setjmp(place) == 0) deep(20);
    after();
    again(10);
    STAY;
}

static void on_signal(int number) {
    (void)number;
    KEEP(HANDLER);
    siglongjmp(handler_place, one);
}
FRAME static void after_handler(void) {
    KEEP(AFTER_HANDLER);
    STAY;
}
FRAME static void raise_inside(int depth) {
    if (depth)
        raise_inside(depth - 1);
    else
        raise(SIGUSR1);
    STAY;
}
FRAME static void jump_from_handler(void) {
    if (sigsetjmp(handler_place, 1) == 0) raise_inside(5);
    after_handler();
    STAY;
}

int main(void) {
    signal(SIGUSR1, on_signal);
    jump();
    jump_from_handler();
    EXPECT_STACK(BEFORE, "before<jump<main");
    EXPECT_STACK(DEEP, "deep{21}<jump<main");
    EXPECT_STACK(AFTER, "after<jump<main");
    EXPECT_STACK(AGAIN, "again{11}<jump<main");
    EXPECT_STACK(HANDLER, "on_signal<...<raise_inside{6}<jump_from_handler<main");
    EXPECT_STACK(AFTER_HANDLER, "after_handler<jump_from_handler<main");
    return 0;
}
