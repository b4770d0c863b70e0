// env: MEMSTOW_CUDA_MOVES=2M
// has: MEMSTOW_CUDA_RESCUE
/* rescue.c — the device has no room for a request. An idle model leaves the device, and the request is served. Later
 * the model comes back unchanged. A request that nothing could serve still fails. */
#include "gpu.h"

int main(void) {
    CUdeviceptr more = 0;
    gpu_begin();
    uint32_t model = gpu_model("unet");
    size_t available = gpu_free_bytes(), bytes = (available / 5 * 3) & ~(2 * MIB - 1);
    if (bytes > 8192 * MIB) bytes = 8192 * MIB; /* all of it goes to the host */
    size_t wanted = (available - bytes + bytes / 2) & ~(2 * MIB - 1);
    CUdeviceptr at = gpu_alloc_for(model, bytes, NULL);
    gpu_write(at, 64 * MIB, 7);
    gpu_write(at + bytes - 64 * MIB, 64 * MIB, 8);
    MUST(!abi_memstow_owner_policy(model, MEMSTOW_STOW, 0));
    MUST(cu.alloc(&more, wanted) == CUDA_ERROR_OUT_OF_MEMORY); /* the model is in use */
    MUST(!abi_memstow_owner_idle(model, 1));
    MUST(cu.alloc(&more, (size_t)1 << 50) == CUDA_ERROR_OUT_OF_MEMORY);
    int result = CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < 3 && result; i++) result = cu.alloc(&more, wanted); /* PyTorch asks again, too */
    OK(result);
    MUST(gpu_out_of(model) == bytes);
    gpu_fill(more, MIB, 1, NULL);
    OK(cu.synchronize());
    OK(cu.free(more));
    MUST(abi_memstow_restore(model) == (int64_t)bytes);
    MUST(gpu_holds(at, 64 * MIB, 7) && gpu_holds(at + bytes - 64 * MIB, 64 * MIB, 8));
    puts("ok");
    return 0;
}
