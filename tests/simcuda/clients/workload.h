/* workload.h — the work of every client of the simulated driver, on any route. In: the functions that the route has
 * found; a function that it has not found is NULL. Out: allocations that stay live until the end, and one line on
 * standard output for each sum that a ledger must have: "live KIND BYTES BLOCKS", then "ok". If CLIENT_FREES is set,
 * everything is freed at the end. */
#ifndef SIMCUDA_WORKLOAD_H
#define SIMCUDA_WORKLOAD_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda_abi.h"

static inline void check(int result, const char *what) {
    if (!result) return;
    fprintf(stderr, "%s: error %d\n", what, result);
    exit(1);
}
#define CHECK(call) check(call, #call)

/* Sums by kind, printed at the end. */
enum { KINDS = 16 };
static struct {
    const char *kind;
    uint64_t bytes, blocks;
} workload_sums[KINDS];

static inline void workload_note(const char *kind, uint64_t bytes) {
    int i = 0;
    while (workload_sums[i].kind && strcmp(workload_sums[i].kind, kind)) i++;
    workload_sums[i].kind = kind;
    workload_sums[i].bytes += bytes;
    workload_sums[i].blocks++;
}

static inline void workload_print(void) {
    for (int i = 0; i < KINDS && workload_sums[i].kind; i++)
        printf("live %s %lu %lu\n", workload_sums[i].kind, (unsigned long)workload_sums[i].bytes,
               (unsigned long)workload_sums[i].blocks);
    puts("ok");
    fflush(stdout);
}

#endif
