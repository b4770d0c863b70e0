/* cuda_pair.c — the cost of a hook for a pair of cudaMallocAsync and cudaFreeAsync, in nanoseconds: the least of many
 * short turns. Two things are built from this file: a library that takes the place of CUDA's runtime and only counts
 * addresses up, and the program that calls this library. No driver takes part, so the time is memstow's own, and says
 * nothing about a GPU. */
#include <stddef.h>
#include <stdint.h>

#ifdef EMPTY_RUNTIME

static uintptr_t next = (uintptr_t)1 << 40;

int cudaMallocAsync(void **at, size_t bytes, void *stream);
int cudaMallocAsync(void **at, size_t bytes, void *stream) {
    (void)stream;
    *at = (void *)next;
    next += (bytes + 511) & ~(size_t)511;
    return 0;
}
int cudaFreeAsync(void *at, void *stream);
int cudaFreeAsync(void *at, void *stream) {
    (void)at, (void)stream;
    return 0;
}
int cuCtxGetCurrent(void **context);
int cuCtxGetCurrent(void **context) {
    *context = &next;
    return 0;
}
int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device) { return *device = 0; }

#else

#include <stdio.h>
#include <time.h>

int cudaMallocAsync(void **at, size_t bytes, void *stream);
int cudaFreeAsync(void *at, void *stream);
enum { TURNS = 400, EACH = 2000, LIVE = 3000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double turn(void) {
    double begin = now();
    for (int i = 0; i < EACH; i++) {
        void *at;
        if (cudaMallocAsync(&at, 4096, NULL) || cudaFreeAsync(at, NULL)) return 0;
    }
    return (now() - begin) / EACH;
}

int main(void) {
    double least = 1e9;
    for (int i = 0; i < LIVE; i++) { /* as many tensors as a model has */
        void *at;
        if (cudaMallocAsync(&at, 100000, NULL)) return 1;
    }
    for (int i = 0; i < TURNS; i++) {
        double each = turn();
        if (each < least) least = each;
    }
    printf("cudaMallocAsync and cudaFreeAsync, each empty: %.0f ns\n", least);
    return 0;
}

#endif
