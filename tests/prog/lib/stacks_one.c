/* stacks_one.c — a library with a function that calls back. The function in stacks_two.c begins at the same offset, but
 * its frame has another size. tests/prog/stacks_libraries.c loads the two libraries in turn. */
#include <string.h>

__attribute__((noipa)) void call_back(void (*back)(unsigned), unsigned n) {
    volatile char room[200];
    room[n % 200] = 1;
    back(n);
    room[0] = room[n % 200];
}
