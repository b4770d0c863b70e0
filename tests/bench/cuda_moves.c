/* cuda_moves.c — how fast a model leaves a simulated device and comes back, beside copies of as much pinned memory in
 * the same process. The driver is a test double (tests/simcuda) whose calls take as long as its settings say: a figure
 * says how memstow uses the driver, and nothing about a GPU. It prints "NAME SECONDS" lines. */
#include "../simcuda/_model.h"

#include <time.h>

enum { LARGE = 3, SMALL = 16, ROUNDS = 3 };
static const size_t LARGE_BYTES = 32 * MIB, SMALL_BYTES = 8 * MIB;
static const size_t ALL = LARGE * 32 * MIB + SMALL * 8 * MIB;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void least(double *to, double seconds) {
    if (!*to || seconds < *to) *to = seconds;
}

static void *at[LARGE + SMALL];

static size_t bytes_of(int i) { return i < LARGE ? LARGE_BYTES : SMALL_BYTES; }

/* The driver's own copies of the same blocks, between the device and pinned memory: asked for at once, awaited once. */
static double copy_all(CUstream stream, char *pinned, int out) {
    double begin = now();
    for (int i = 0; i < LARGE + SMALL; i++) {
        MUST(!(out ? cuMemcpyDtoHAsync_v2(pinned, (CUdeviceptr)at[i], bytes_of(i), stream)
                   : cuMemcpyHtoDAsync_v2((CUdeviceptr)at[i], pinned, bytes_of(i), stream)));
        pinned += bytes_of(i);
    }
    MUST(!cuStreamSynchronize(stream));
    return now() - begin;
}

static void copies(void) {
    CUstream stream;
    void *pinned;
    double out = 0, back = 0;
    MUST(!cuMemHostAlloc(&pinned, ALL, 0) && !cuStreamCreate(&stream, 1));
    memset(pinned, 1, ALL);
    for (int i = 0; i < ROUNDS; i++) {
        least(&out, copy_all(stream, pinned, 1));
        least(&back, copy_all(stream, pinned, 0));
    }
    MUST(!cuMemFreeHost(pinned) && !cuStreamDestroy_v2(stream));
    printf("copy_out %f\ncopy_back %f\n", out, back);
}

int main(void) {
    struct model model;
    double out = 0, back = 0;
    find_memstow();
    model = model_open("unet");
    MUST(!memstow_scope_enter_(model.owner));
    for (int i = 0; i < LARGE + SMALL; i++) MUST(!cudaMalloc(&at[i], bytes_of(i)));
    MUST(!memstow_scope_leave_(model.owner));
    copies();
    MUST(!memstow_owner_idle_(model.owner, 1));
    for (int i = 0; i <= ROUNDS; i++) {
        double begin = now();
        MUST(memstow_stow_(model.owner) == (int64_t)ALL);
        double between = now();
        MUST(memstow_restore_(model.owner) == (int64_t)ALL);
        double end = now();
        if (!i) printf("first_out %f\nfirst_back %f\n", between - begin, end - between);
        if (i) least(&out, between - begin), least(&back, end - between);
    }
    printf("later_out %f\nlater_back %f\n", out, back);
    return 0;
}
