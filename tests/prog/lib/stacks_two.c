/* stacks_two.c — see stacks_one.c. */
#include <string.h>

__attribute__((noipa)) void call_back(void (*back)(unsigned), unsigned n) {
    volatile char room[1000];
    room[n % 200] = 1;
    back(n);
    room[0] = room[n % 200];
}
