// The simulated CUDA driver, a test double: virtual memory management, peers, and memory of other processes.
#include <sys/wait.h>
#include <unistd.h>

#include "proof.h"

static void begin(void) {
    setenv("SIMCUDA_DEVICES", "2", 1);
    proof_begin();
}
TestSuite(simcuda_vmm, .init = begin);

static CUdeviceptr reserve(size_t bytes) {
    CUdeviceptr at;
    OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
    return at;
}

static CUmemGenericAllocationHandle create(size_t bytes, int device) {
    CUmemAllocationProp prop = proof_prop(device);
    CUmemGenericAllocationHandle handle;
    OK(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

static void open_to(CUdeviceptr at, size_t bytes, int device) {
    CUmemAccessDesc access = proof_access(device);
    OK(cuMemSetAccess(at, bytes, &access, 1));
}

Test(simcuda_vmm, capacity_goes_at_create_and_comes_back_after_unmap_and_release) {
    for (int release_first = 0; release_first < 2; release_first++) {
        uint64_t before = proof_usage(0).used;
        CUdeviceptr at = reserve(4 * MIB);
        cr_assert_eq(proof_usage(0).used, before, "an address takes nothing");
        CUmemGenericAllocationHandle handle = create(4 * MIB, 0);
        cr_assert_eq(proof_usage(0).used, before + 4 * MIB);
        OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
        if (release_first)
            OK(cuMemRelease(handle));
        else
            OK(cuMemUnmap(at, 4 * MIB));
        cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "one of two is not enough");
        if (release_first)
            OK(cuMemUnmap(at, 4 * MIB));
        else
            OK(cuMemRelease(handle));
        cr_assert_eq(proof_usage(0).used, before);
        OK(cuMemAddressFree(at, 4 * MIB));
    }
}

/* cuda.h says that the range of a pointer is the reserved address range, not the mapped region. */
Test(simcuda_vmm, a_range_is_what_was_reserved) {
    CUdeviceptr at = reserve(8 * MIB), start;
    size_t size;
    OK(cuMemMap(at + 4 * MIB, 2 * MIB, 0, create(2 * MIB, 0), 0));
    OK(cuPointerGetAttribute(&start, CU_POINTER_RANGE_START, at + 5 * MIB));
    OK(cuPointerGetAttribute(&size, CU_POINTER_RANGE_SIZE, at + 5 * MIB));
    cr_assert(start == at && size == 8 * MIB);
    OK(cuPointerGetAttribute(&start, CU_POINTER_MAPPING_BASE, at + 5 * MIB));
    OK(cuPointerGetAttribute(&size, CU_POINTER_MAPPING_SIZE, at + 5 * MIB));
    cr_assert(start == at + 4 * MIB && size == 2 * MIB);
}

Test(simcuda_vmm, what_is_refused) {
    CUmemAllocationProp prop = proof_prop(0);
    CUmemAccessDesc access = proof_access(0);
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    REFUSED(cuMemAddressReserve(&at, MIB, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemCreate(&handle, 3 * MIB, &prop, 0), CUDA_ERROR_INVALID_VALUE);
    at = reserve(8 * MIB);
    handle = create(4 * MIB, 0);
    REFUSED(cuMemMap(at, 2 * MIB, 2 * MIB, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(at + MIB, 2 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemMap(at + 6 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemMap(at, 4 * MIB, 0, handle, 0));
    REFUSED(cuMemMap(at + 2 * MIB, 4 * MIB, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(at, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(at + 2 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(at, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemUnmap(at + 2 * MIB, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemSetAccess(at, 2 * MIB, &access, 1), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemAddressFree(at, 8 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemUnmap(at, 4 * MIB));
    REFUSED(cuMemAddressFree(at, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemAddressFree(at, 8 * MIB));
    OK(cuMemRelease(handle));
    REFUSED(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

Test(simcuda_vmm, a_fresh_mapping_has_no_access) {
    char bytes[16];
    CUdeviceptr at = reserve(2 * MIB);
    OK(cuMemMap(at, 2 * MIB, 0, create(2 * MIB, 0), 0));
    REFUSED(cuMemcpyDtoH_v2(bytes, at, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_vmm, an_unmapped_address_faults) {
    char bytes[16];
    CUdeviceptr at = reserve(2 * MIB);
    OK(cuMemMap(at, 2 * MIB, 0, create(2 * MIB, 0), 0));
    open_to(at, 2 * MIB, 0);
    OK(cuMemcpyDtoH_v2(bytes, at, 16));
    OK(cuMemUnmap(at, 2 * MIB));
    REFUSED(cuMemcpyDtoH_v2(bytes, at, 16), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_vmm, content_is_the_handles_not_the_addresses) {
    CUmemGenericAllocationHandle handle = create(2 * MIB, 0);
    CUdeviceptr one = reserve(2 * MIB), two = reserve(2 * MIB);
    uint32_t back;
    OK(cuMemMap(one, 2 * MIB, 0, handle, 0));
    OK(cuMemMap(two, 2 * MIB, 0, handle, 0));
    open_to(one, 2 * MIB, 0);
    open_to(two, 2 * MIB, 0);
    OK(cuMemsetD32_v2(one, 77, 1));
    OK(cuMemcpyDtoH_v2(&back, two, 4));
    cr_assert_eq(back, 77);
    CUmemGenericAllocationHandle again;
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)two));
    cr_assert_eq(again, handle);
}

Test(simcuda_vmm, one_copy_over_many_mappings) {
    static char out[6 << 20], back[6 << 20];
    CUdeviceptr at = reserve(6 * MIB);
    for (int i = 0; i < 3; i++) OK(cuMemMap(at + i * 2 * MIB, 2 * MIB, 0, create(2 * MIB, 0), 0));
    open_to(at, 6 * MIB, 0);
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i * 31 >> 3);
    OK(cuMemcpyHtoD_v2(at, out, sizeof out));
    OK(cuMemcpyDtoH_v2(back, at, sizeof back));
    cr_assert(!memcmp(out, back, sizeof out));
    OK(cuMemUnmap(at, 6 * MIB));
}

Test(simcuda_vmm, an_address_can_be_asked_for) {
    CUdeviceptr at = reserve(8 * MIB), again;
    OK(cuMemAddressFree(at, 8 * MIB));
    OK(cuMemAddressReserve(&again, 4 * MIB, 0, at, 0));
    cr_assert_eq(again, at);
    OK(cuMemAddressReserve(&again, 4 * MIB, 0, at, 0));
    cr_assert_neq(again, at, "taken: elsewhere");
}

/* ---- peers */

Test(simcuda_vmm, access_is_for_each_device) {
    CUcontext second;
    CUdeviceptr at = reserve(2 * MIB);
    unsigned long long flags;
    CUmemLocation other = {CU_MEM_LOCATION_DEVICE, 1};
    OK(cuMemMap(at, 2 * MIB, 0, create(2 * MIB, 0), 0));
    open_to(at, 2 * MIB, 0);
    OK(cuMemGetAccess(&flags, &other, at));
    cr_assert_eq(flags, 0);
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(proof_launch("sim_touch", NULL, at, 100, 0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuCtxSetCurrent(proof_context));
    OK(cuCtxSynchronize());
    OK(cuDevicePrimaryCtxReset_v2(1));
    open_to(at, 2 * MIB, 1);
    OK(cuCtxSetCurrent(second));
    OK(proof_launch("sim_touch", NULL, at, 100, 0));
    OK(cuCtxSynchronize());
}

Test(simcuda_vmm, plain_memory_of_a_peer) {
    CUcontext second;
    CUdeviceptr here, there;
    uint32_t back;
    OK(cuMemAlloc_v2(&here, 2 * MIB));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(cuMemAlloc_v2(&there, 2 * MIB));
    OK(cuMemsetD32_v2(there, 5, 1));
    OK(cuMemcpyPeer(here, proof_context, there, second, 4)); /* needs no access right */
    OK(cuMemcpyDtoH_v2(&back, here, 4));
    cr_assert_eq(back, 5);
    OK(cuCtxEnablePeerAccess(proof_context, 0));
    REFUSED(cuCtxEnablePeerAccess(proof_context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    OK(proof_launch("sim_add", NULL, there, here, 1));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(&back, there, 4));
    cr_assert_eq(back, 10);
    OK(cuCtxDisablePeerAccess(proof_context));
    OK(proof_launch("sim_add", NULL, there, here, 1));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* ---- other processes */

Test(simcuda_vmm, shareable_handles) {
    CUmemAllocationProp prop = proof_prop(0);
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr one = reserve(2 * MIB), two = reserve(2 * MIB);
    uint32_t back;
    int fd;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    REFUSED(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_POSIX_FD, 0), CUDA_ERROR_INVALID_VALUE);
    prop.requestedHandleTypes = CU_MEM_HANDLE_POSIX_FD;
    OK(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_POSIX_FD, 0));
    uint64_t used = proof_usage(0).used;
    OK(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_POSIX_FD));
    cr_assert_eq(proof_usage(0).used, used);
    OK(cuMemMap(one, 2 * MIB, 0, handle, 0));
    OK(cuMemMap(two, 2 * MIB, 0, imported, 0));
    open_to(one, 2 * MIB, 0);
    open_to(two, 2 * MIB, 0);
    OK(cuMemsetD32_v2(one, 4711, 1));
    OK(cuMemcpyDtoH_v2(&back, two, 4));
    cr_assert_eq(back, 4711);
    close(fd);
}

/* The parent forks this child before it begins to use the driver, because a driver does not live on in a child. */
static int child_reads(int from) {
    CUipcMemHandle handle;
    CUdeviceptr at;
    uint32_t back;
    proof_begin();
    if (read(from, &handle, sizeof handle) != sizeof handle || cuIpcOpenMemHandle_v2(&at, handle, 1)) return 1;
    if (cuMemcpyDtoH_v2(&back, at, 4) || back != 31337) return 2;
    if (cuMemsetD32_v2(at, 99, 1) || cuCtxSynchronize()) return 3;
    return cuIpcCloseMemHandle(at) ? 4 : 0;
}

Test(simcuda_ipc, plain_memory_in_another_process) {
    CUipcMemHandle handle;
    CUdeviceptr at;
    uint32_t back;
    int ends[2], status;
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child) _exit(child_reads(ends[0]));
    proof_begin();
    OK(cuMemAlloc_v2(&at, 1000));
    OK(cuMemsetD32_v2(at, 31337, 1));
    OK(cuCtxSynchronize());
    OK(cuIpcGetMemHandle(&handle, at));
    REFUSED(cuIpcOpenMemHandle_v2(&at, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
    cr_assert_eq(write(ends[1], &handle, sizeof handle), (ssize_t)sizeof handle);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    OK(cuMemcpyDtoH_v2(&back, at, 4));
    cr_assert_eq(back, 99);
}
