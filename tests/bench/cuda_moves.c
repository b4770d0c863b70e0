/* cuda_moves.c — how fast a model leaves a simulated device and comes back. For comparison, the process also copies as
 * many bytes of pinned memory. The driver is a test double (tests/simcuda), whose calls take as long as its
 * settings say. So the figures tell how well memstow uses the driver, but nothing about a GPU. The program prints "NAME
 * SECONDS" lines. */
#include "../simcuda/_model.h"

#include <time.h>

enum { BLOCKS_MOST = 19, ROUNDS = 3 };
static const size_t ALL = 224 * MIB, SMALL_BYTES = 8 * MIB;
/* There are 3 blocks of 32 MiB and 16 blocks of 8 MiB. With the argument "large", there are instead 1 block of 192 MiB
 * and 4 blocks of 8 MiB. */
static int large = 3, blocks = BLOCKS_MOST;
static size_t large_bytes = 32 * MIB;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void least(double *to, double seconds) {
    if (!*to || seconds < *to) *to = seconds;
}

static void *at[BLOCKS_MOST];

static size_t bytes_of(int i) { return i < large ? large_bytes : SMALL_BYTES; }

/* Copies all blocks between the device and pinned memory with the driver's own functions. First requests all copies,
 * then waits for all of them. Returns how many seconds this took. */
static double copy_all(CUstream stream, char *pinned, int out) {
    double begin = now();
    for (int i = 0; i < blocks; i++) {
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

int main(int argc, char **argv) {
    struct model model;
    double out = 0, back = 0;
    if (argc > 1 && !strcmp(argv[1], "large")) large = 1, blocks = 5, large_bytes = 192 * MIB;
    find_memstow();
    model = model_open("unet");
    MUST(!memstow_scope_enter_(model.owner));
    for (int i = 0; i < blocks; i++) MUST(!cudaMalloc(&at[i], bytes_of(i)));
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
