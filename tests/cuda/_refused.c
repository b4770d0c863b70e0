/* Asks a device for more than it has, as programs do. `pool`: asks the default pool. `plain`: asks again for the same
 * size, as PyTorch's native allocator does. `probe`: asks for less each time until it gets something. */
#include "expect.h"

#include "cuda_abi.h"

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(CUcontext *, int);
int cuCtxSetCurrent(CUcontext);
int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);

int main(int count, char **arguments) {
    CUcontext context;
    CUdeviceptr at;
    const char *how = count > 1 ? arguments[1] : "";
    size_t bytes = (size_t)100 << 30;
    MUST(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context));
    MUST(!cuMemAlloc_v2(&at, 5 << 20));
    if (!strcmp(how, "pool")) {
        MUST(cuMemAllocAsync(&at, bytes, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
        MUST(cuMemAllocAsync(&at, bytes, NULL) == CUDA_ERROR_OUT_OF_MEMORY); /* too soon for a second snapshot */
    } else if (!strcmp(how, "plain")) {
        for (int i = 0; i < 3; i++) MUST(cuMemAlloc_v2(&at, bytes) == CUDA_ERROR_OUT_OF_MEMORY);
    } else {
        while (cuMemAlloc_v2(&at, bytes)) bytes /= 2;
    }
    MUST(!cuMemAlloc_v2(&at, 3 << 20));
    say("ok");
    return 0;
}
