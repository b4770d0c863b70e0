/* cuda_pairs.c — N pairs of cudaMallocAsync and cudaFreeAsync with 3,000 live blocks, for tests/cost/cuda.py. The
 * CUDA runtime is the double in tests/bench/cuda_pair.c. Its functions only count addresses up. */
#include <stddef.h>
#include <stdlib.h>

int cudaMallocAsync(void **at, size_t bytes, void *stream);
int cudaFreeAsync(void *at, void *stream);
enum { LIVE = 3000 };

int main(int argc, char **argv) {
    void *at;
    for (int i = 0; i < LIVE; i++)
        if (cudaMallocAsync(&at, 100000, NULL)) return 1;
    for (long i = argc > 1 ? strtol(argv[1], NULL, 10) : 0; i > 0; i--)
        if (cudaMallocAsync(&at, 4096, NULL) || cudaFreeAsync(at, NULL)) return 1;
    return 0;
}
