/* stacks_one.c — calls back from a frame of one shape. tests/prog/stacks_libraries.c loads it and stacks_two.c in turn.
 * stacks_two.c has its code at the same offsets, but other frames. */
#include <string.h>

__attribute__((noipa)) void call_back(void (*back)(unsigned), unsigned n) {
    volatile char room[200];
    room[n % 200] = 1;
    back(n);
    room[0] = room[n % 200];
}
