/* scopes.c — measures the cost of scopes in nanoseconds. A cost is the least of many short turns, because machines are
 * noisy. */
#include "../prog/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TURNS = 3000, EACH = 2000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#define LEAST(what, count, code)                                                                                       \
    do {                                                                                                               \
        double least = 1e9;                                                                                            \
        for (int turn = 0; turn < TURNS; turn++) {                                                                     \
            double begin = now();                                                                                      \
            for (int i = 0; i < EACH; i++) code;                                                                       \
            double each = (now() - begin) / EACH / (count);                                                            \
            if (each < least) least = each;                                                                            \
        }                                                                                                              \
        printf("%-40s %6.1f ns\n", what, least);                                                                       \
    } while (0)

static void pair(void) {
    void *volatile p = malloc(100);
    free(p);
}

int main(void) {
    abi_find();
    LEAST(has_memstow ? "malloc and free, no owners yet" : "malloc and free, untracked", 1, pair());
    if (!has_memstow) return 0;
    uint32_t model = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "model", "", 0, 0);
    uint32_t node = (uint32_t)abi_memstow_owner_open(MEMSTOW_NODE, "node", "", 0, 0);
    LEAST("a scope entered or left", 2, {
        abi_memstow_scope_enter(node);
        abi_memstow_scope_leave(node);
    });
    LEAST("malloc and free, outside of scopes", 1, pair());
    abi_memstow_scope_enter(node);
    LEAST("malloc and free, in a node's scope", 1, pair());
    abi_memstow_scope_enter(model);
    LEAST("malloc and free, in a model's scope", 1, pair());
    return 0;
}
