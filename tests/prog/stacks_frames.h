/* stacks_frames.h — the frames that compilers make. The programs that include it differ in their flags. */
#include "stacks.h"

#include <alloca.h>

typedef float wide __attribute__((vector_size(32)));

enum {
    PLAIN = 10007,
    ROOM = 10009,
    VARYING = 10037,
    ALIGNED = 10039,
    ALIGNED_VARYING = 10061,
    MANY = 10067,
    EARLY = 10069,
    COLD = 10079,
    ARGUMENTS = 10091,
    POINTER = 10093,
    BELOW = 10099
};

static volatile int one = 1; /* a value that the compiler cannot know */

FRAME static void plain_inner(void) {
    KEEP(PLAIN);
    STAY;
}
FRAME static void plain_outer(void) {
    plain_inner();
    STAY;
}

FRAME static void room_inner(volatile char *room) {
    KEEP(ROOM);
    room[0] = 1;
    STAY;
}
FRAME static void room_outer(void) {
    volatile char room[100000];
    room_inner(room);
    room[1] = room[0];
    STAY;
}

FRAME static void varying_inner(volatile char *room) {
    KEEP(VARYING);
    room[0] = 1;
    STAY;
}
FRAME static void varying_outer(size_t size) {
    volatile char *room = alloca(size * one);
    varying_inner(room);
    room[size - 1] = room[0];
    STAY;
}

FRAME static void aligned_inner(volatile wide *room) {
    KEEP(ALIGNED);
    room[0] = room[1];
    STAY;
}
FRAME static void aligned_outer(void) {
    volatile wide room[4] __attribute__((aligned(64))) = {{1}};
    MUST((uintptr_t)room % 64 == 0);
    aligned_inner(room);
    room[1] = room[0];
    STAY;
}

FRAME static void both_inner(volatile char *room, volatile wide *wides) {
    KEEP(ALIGNED_VARYING);
    room[0] = (char)wides[0][0];
    STAY;
}
FRAME static void both_outer(size_t size, int a, int b, int c, int d, int e, int f, int g, int h) {
    volatile wide wides[3] __attribute__((aligned(128))) = {{(float)(a + b + c + d)}};
    volatile char *room = alloca(size * one);
    MUST((uintptr_t)wides % 128 == 0);
    both_inner(room, wides);
    room[1] = (char)(room[0] + e + f + g + h);
    STAY;
}

/* More live values during the call than registers. */
FRAME static int many_inner(int n) {
    KEEP(MANY);
    return n * one;
}
FRAME static int many_outer(int a, int b, int c, int d) {
    int e = a * one, f = b * one, g = c * one, h = d * one, i = e ^ f, j = g ^ h, k = many_inner(i);
    int l = many_inner(0 * k) + a + b + c + d;
    return e + f * 2 + g * 3 + h * 4 + i * 5 + j * 6 + k * 7 + l;
}

/* early_outer may return before it sets up its frame: the compiler may put the first test before the frame's setup. */
FRAME static void early_inner(void) {
    KEEP(EARLY);
    STAY;
}
FRAME static int early_outer(int n) {
    if (n != one) return 0;
    int kept = n * one;
    early_inner();
    return kept + one;
}

/* A rarely used part may lie elsewhere: function.cold. */
__attribute__((noinline, cold)) static void cold_inner(void) {
    KEEP(COLD);
    STAY;
}
FRAME static int cold_outer(int n) {
    if (__builtin_expect(n == one, 0)) {
        cold_inner();
        cold_inner();
        return n + one;
    }
    return n;
}

/* Arguments on the stack, pushed between calls. */
FRAME static long arguments_inner(long a, long b, long c, long d, long e, long f, long g, long h, long i) {
    KEEP(ARGUMENTS);
    STAY;
    return a + b + c + d + e + f + g + h + i;
}
FRAME static long arguments_outer(long n) {
    return arguments_inner(n, 2, 3, 4, 5, 6, 7 * n, 8 * n, 9 * n) + arguments_inner(0, 0, 0, 0, 0, 0, 0, 0, 0) * one;
}

static void pointer_target(void) {
    KEEP(POINTER);
    STAY;
}
static void (*volatile pointer)(void) = pointer_target;
FRAME static void pointer_outer(void) {
    pointer();
    STAY;
}

/* A recursion: the same function with the same return address, again and again. */
FRAME static void below(int depth) {
    if (depth == 0)
        KEEP(BELOW);
    else
        below(depth - 1);
    STAY;
}

FRAME static void run_all(void) {
    plain_outer();
    room_outer();
    varying_outer(1234);
    aligned_outer();
    both_outer(777, 1, 2, 3, 4, 5, 6, 7, 8);
    MUST(many_outer(1, 2, 3, 4) != 0);
    early_outer(0), early_outer(1);
    cold_outer(0), cold_outer(1);
    MUST(arguments_outer(1) > 0);
    pointer_outer();
    below(7);
    STAY;
}

int main(void) {
    run_all();
    EXPECT_STACK(PLAIN, "plain_inner<plain_outer<run_all<main");
    EXPECT_STACK(ROOM, "room_inner<room_outer<run_all<main");
    EXPECT_STACK(VARYING, "varying_inner<varying_outer<run_all<main");
    EXPECT_STACK(ALIGNED, "aligned_inner<aligned_outer<run_all<main");
    EXPECT_STACK(ALIGNED_VARYING, "both_inner<both_outer<run_all<main");
    EXPECT_STACK(MANY, "many_inner<many_outer<run_all<main");
    EXPECT_STACK(EARLY, "early_inner<early_outer<run_all<main");
    EXPECT_STACK(COLD, "cold_inner<cold_outer*<run_all<main");
    EXPECT_STACK(ARGUMENTS, "arguments_inner<arguments_outer<run_all<main");
    EXPECT_STACK(POINTER, "pointer_target<pointer_outer<run_all<main");
    EXPECT_STACK(BELOW, "below{8}<run_all<main");
    return 0;
}
