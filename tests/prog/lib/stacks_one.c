/* stacks_one.c — calls back from a frame of one shape: tests/prog/stacks_libraries.c loads it and stacks_two.c, whose
 * code lies at the same offsets and whose frames are others, in turn. */
#include <string.h>

__attribute__((noipa)) void call_back(void (*back)(unsigned), unsigned n) {
    volatile char room[200];
    room[n % 200] = 1;
    back(n);
    room[0] = room[n % 200];
}
