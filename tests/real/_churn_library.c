/* One of several libraries that come and go (_churn.cc). NUMBER gives each library a layout of its own. */
#include <stdlib.h>

#define FRAME __attribute__((noipa))

typedef void callback(void *argument);

FRAME static void call(callback *back, void *argument, int depth) {
    volatile char room[16 + NUMBER * 24];
    room[0] = 0;
    if (depth)
        call(back, argument, depth - 1);
    else
        back(argument);
    __asm__ volatile("" ::: "memory");
}

void churn_call(callback *back, void *argument);
void churn_call(callback *back, void *argument) {
    char *scratch = malloc(40 + NUMBER);
    scratch[0] = NUMBER;
    call(back, argument, NUMBER % 3);
    free(scratch);
}
