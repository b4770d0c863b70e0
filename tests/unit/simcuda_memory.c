// The memory of the simulated CUDA driver, a test double: how much of a device it takes, what it contains, and who may
// use it.
#include <unistd.h>

#include "proof.h"

TestSuite(simcuda_memory, .init = proof_begin);

/* About half of the bits of random bytes are set. Zeros, and bytes of a pattern, have another share of set bits. */
static bool looks_random(const unsigned char *at, size_t bytes) {
    size_t bits = 0;
    for (size_t i = 0; i < bytes; i++) bits += (size_t)__builtin_popcount(at[i]);
    return bits > bytes * 3.8 && bits < bytes * 4.2;
}

Test(simcuda_memory, fresh_memory_is_random) {
    static unsigned char bytes[1 << 20];
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, sizeof bytes));
    OK(cuMemcpyDtoH_v2(bytes, at, sizeof bytes));
    cr_assert(looks_random(bytes, sizeof bytes));
    memset(bytes, 0, sizeof bytes);
    OK(cuMemcpyHtoD_v2(at, bytes, sizeof bytes));
    OK(cuMemFree_v2(at));
    OK(cuMemAlloc_v2(&at, sizeof bytes));
    OK(cuMemcpyDtoH_v2(bytes, at, sizeof bytes));
    cr_assert(looks_random(bytes, sizeof bytes), "what was freed does not come back");
}

/* Asks the kernel, which answers without a signal. */
static bool host_can_read(CUdeviceptr at) {
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    bool can = write(ends[1], (void *)(uintptr_t)at, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

Test(simcuda_memory, the_host_cannot_read_it) {
    CUdeviceptr plain, pooled, managed;
    OK(cuMemAlloc_v2(&plain, MIB));
    OK(cuMemAllocAsync(&pooled, MIB, NULL));
    OK(cuMemAllocManaged(&managed, MIB, 1));
    cr_assert_not(host_can_read(plain));
    cr_assert_not(host_can_read(pooled));
    cr_assert(host_can_read(managed));
}

Test(simcuda_memory, managed_memory_it_can) {
    CUdeviceptr at;
    uint32_t back;
    OK(cuMemAllocManaged(&at, 4 * MIB, 1));
    *(uint32_t *)(uintptr_t)at = 1234;
    OK(cuMemcpyDtoH_v2(&back, at, 4));
    cr_assert_eq(back, 1234);
    OK(cuMemsetD32_v2(at, 99, 1));
    OK(cuCtxSynchronize());
    cr_assert_eq(*(uint32_t *)(uintptr_t)at, 99);
    OK(cuMemFree_v2(at));
}

Test(simcuda_memory, managed_memory_takes_capacity_while_resident) {
    CUdeviceptr at;
    uint64_t before = proof_usage(0).used;
    OK(cuMemAllocManaged(&at, 4 * MIB, 1));
    cr_assert_eq(proof_usage(0).used, before);
    OK(cuMemPrefetchAsync(at, 4 * MIB, 0, NULL));
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB);
    OK(cuMemPrefetchAsync(at, 4 * MIB, -1, NULL));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_memory, capacity_ends) {
    CUdeviceptr at[64];
    size_t available, total;
    int n = 0;
    while (n < 64 && cuMemAlloc_v2(&at[n], 4 * MIB) == CUDA_SUCCESS) n++;
    cr_assert_eq(n, 30, "128 MiB less 8 MiB for the context hold 30 blocks of 4 MiB");
    OK(cuMemGetInfo_v2(&available, &total));
    cr_assert_eq(available, 0);
    cr_assert_eq(total, 128 * MIB);
    OK(cuMemFree_v2(at[3]));
    OK(cuMemAlloc_v2(&at[3], 4 * MIB));
}

Test(simcuda_memory, fragments_serve_small_requests_only) {
    CUdeviceptr at;
    sim_set_fragmented(0, 100 * MIB);
    REFUSED(cuMemAlloc_v2(&at, 40 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&at, 8 * MIB));
}

Test(simcuda_memory, small_blocks_share_a_piece) {
    CUdeviceptr at[8];
    uint64_t before = proof_usage(0).used;
    for (int i = 0; i < 8; i++) OK(cuMemAlloc_v2(&at[i], 1000));
    cr_assert_eq(proof_usage(0).used, before + 2 * MIB);
    for (int i = 0; i < 8; i++) OK(cuMemFree_v2(at[i]));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_memory, foreign_and_double_frees_are_refused) {
    CUdeviceptr at;
    int local;
    OK(cuMemAlloc_v2(&at, 4 * MIB));
    REFUSED(cuMemFree_v2(at + 512), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFree_v2((CUdeviceptr)(uintptr_t)&local), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(at));
    REFUSED(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(0));
}

Test(simcuda_memory, bad_access_breaks_the_context_when_executed) {
    CUdeviceptr at, other;
    char bytes[16];
    OK(cuMemAlloc_v2(&at, 4 * MIB));
    OK(cuMemAlloc_v2(&other, 4 * MIB));
    sim_hold(1);
    OK(cuMemsetD32Async(at + 8 * MIB * 1024, 1, 1, NULL)); /* nothing there: still no error */
    OK(cuMemAlloc_v2(&other, 4 * MIB));
    sim_hold(-1);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemcpyDtoH_v2(bytes, at, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
    REFUSED(cuMemAlloc_v2(&other, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(proof_usage(0).faults, 1);
}

Test(simcuda_memory, a_copy_past_the_end_is_a_fault) {
    static char bytes[4 << 20];
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, 2 * MIB));
    REFUSED(cuMemcpyHtoD_v2(at, bytes, sizeof bytes), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_memory, a_broken_context_can_be_reset) {
    CUdeviceptr at;
    uint64_t context = proof_usage(0).contexts;
    OK(cuMemAlloc_v2(&at, 4 * MIB));
    OK(cuMemsetD32_v2(at + 1024 * MIB, 1, 1));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuDevicePrimaryCtxReset_v2(0));
    cr_assert_eq(proof_usage(0).used, context);
    REFUSED(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAlloc_v2(&at, 4 * MIB));
}

Test(simcuda_memory, a_context_takes_what_was_made_in_it) {
    CUcontext other;
    CUdeviceptr at;
    void *host;
    uint64_t before = proof_usage(0).used;
    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuMemAlloc_v2(&at, 8 * MIB));
    OK(cuMemHostAlloc(&host, 4096, 0));
    OK(cuCtxDestroy_v2(other));
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert_eq(proof_usage(0).pinned, 0);
    REFUSED(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuCtxDestroy_v2(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

Test(simcuda_memory, host_memory) {
    void *at, *device;
    char *own = aligned_alloc(4096, 8192);
    OK(cuMemHostAlloc(&at, 10000, 0));
    OK(cuMemHostGetDevicePointer_v2((CUdeviceptr *)&device, at, 0));
    cr_assert_eq(device, at);
    OK(cuMemHostRegister_v2(own, 8192, 0));
    REFUSED(cuMemHostRegister_v2(own + 4096, 4096, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    cr_assert_eq(proof_usage(0).pinned, 10000);
    cr_assert_eq(proof_usage(0).registered, 8192);
    REFUSED(cuMemFreeHost(own), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemHostUnregister(own));
    REFUSED(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    OK(cuMemFreeHost(at));
    REFUSED(cuMemFreeHost(at), CUDA_ERROR_INVALID_VALUE);
    free(own);
}

Test(simcuda_memory, pitched_memory_and_rectangles) {
    CUdeviceptr at;
    size_t pitch;
    char out[10][100], back[10][100];
    OK(cuMemAllocPitch_v2(&at, &pitch, 100, 10, 4));
    cr_assert_eq(pitch, 512);
    for (int i = 0; i < 1000; i++) out[i / 100][i % 100] = (char)i;
    CUDA_MEMCPY2D there = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = out,
                           .srcPitch = 100,
                           .dstDevice = at,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstPitch = pitch,
                           .WidthInBytes = 100,
                           .Height = 10};
    CUDA_MEMCPY2D home = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = at,
                          .srcPitch = pitch,
                          .dstHost = back,
                          .dstMemoryType = CU_MEMORYTYPE_HOST,
                          .dstPitch = 100,
                          .WidthInBytes = 100,
                          .Height = 10};
    OK(cuMemcpy2D_v2(&there));
    OK(cuMemcpy2D_v2(&home));
    cr_assert(!memcmp(out, back, sizeof out));
}

Test(simcuda_memory, arrays) {
    CUDA_ARRAY_DESCRIPTOR shape = {64, 64, 0x20, 1};
    CUarray array;
    static char out[64 * 256], back[64 * 256];
    uint64_t before = proof_usage(0).used;
    OK(cuArrayCreate_v2(&array, &shape));
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i * 3);
    OK(cuMemcpyHtoA_v2(array, 0, out, sizeof out));
    OK(cuMemcpyAtoH_v2(back, array, 0, sizeof back));
    cr_assert(!memcmp(out, back, sizeof out));
    OK(cuArrayDestroy(array));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_memory, what_a_pointer_is) {
    CUdeviceptr at, base;
    size_t size;
    unsigned type, capable;
    int ordinal;
    void *values[] = {&type, &ordinal};
    OK(cuMemAlloc_v2(&at, 3 * MIB));
    OK(cuMemGetAddressRange_v2(&base, &size, at + 100));
    cr_assert(base == at && size == 3 * MIB);
    OK(cuPointerGetAttribute(&capable, CU_POINTER_IPC_CAPABLE, at));
    cr_assert_eq(capable, 1);
    REFUSED(cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&at),
            CUDA_ERROR_INVALID_VALUE);
    int which[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL};
    OK(cuPointerGetAttributes(2, which, values, (CUdeviceptr)(uintptr_t)&at));
    cr_assert(type == 0 && ordinal == -2);
}

Test(simcuda_memory, errors_at_the_nth_call) {
    CUdeviceptr at;
    sim_fail("cuMemAlloc_v2", 2, CUDA_ERROR_OUT_OF_MEMORY, 1);
    OK(cuMemAlloc_v2(&at, MIB));
    REFUSED(cuMemAlloc_v2(&at, MIB), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&at, MIB));
    sim_fail("*", 2, 719, 1);
    OK(cuCtxSynchronize());
    REFUSED(cuCtxSynchronize(), 719);
    OK(cuCtxSynchronize());
    cr_assert_eq(sim_count("cuMemAlloc_v2"), 3);
    cr_assert_eq(sim_count_ok("cuMemAlloc_v2"), 2);
}

Test(simcuda_memory, the_journal_says_what_was_called) {
    char text[4096];
    CUdeviceptr at;
    sim_count_reset();
    OK(cuMemAlloc_v2(&at, 4096));
    REFUSED(cuMemFree_v2(at + 1), CUDA_ERROR_INVALID_VALUE);
    cr_assert(sim_log_text(text, sizeof text) < sizeof text);
    cr_assert(strstr(text, " cuMemAlloc_v2 0 4096 ") && strstr(text, " cuMemFree_v2 1 "), "%s", text);
    cr_assert_eq(sim_count("*"), 2);
}
