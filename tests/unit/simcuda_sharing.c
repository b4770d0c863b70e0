// The simulated CUDA driver, a test double: pools of other processes, multicast objects, captures into an existing
// graph, addresses below 4 GiB.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proof.h"

CUresult cuMemAlloc(unsigned *, unsigned);
CUresult cuMemFree(unsigned);
CUresult cuMemPoolExportToShareableHandle(void *, CUmemoryPool, int, uint64_t);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *, void *, int, uint64_t);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *, CUdeviceptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *, CUmemoryPool, CUmemPoolPtrExportData *);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *, const CUmulticastObjectProp *);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle, CUdevice);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle, size_t, CUmemGenericAllocationHandle, size_t, size_t,
                            uint64_t);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle, CUdevice, size_t, size_t);
CUresult cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *, const void *, size_t, int);

/* ---- pools */

struct shared {
    CUmemPoolPtrExportData first, second;
    int file; /* the child has it, too, from before the fork */
};

static CUmemoryPool shared_pool(int handle_types) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemoryPool pool;
    props.handleTypes = handle_types;
    OK(cuMemPoolCreate(&pool, &props));
    return pool;
}

/* What the child does: it opens the parent's pool by a descriptor, and uses memory of that pool. The parent forks the
 * child before the parent begins to use the driver, because a driver does not live on in a child. */
static int child_uses(int from) {
    struct shared shared;
    CUdeviceptr one, two;
    CUmemoryPool pool;
    uint32_t back;
    proof_begin();
    if (read(from, &shared, sizeof shared) != sizeof shared) return 1;
    if (cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)shared.file, CU_MEM_HANDLE_POSIX_FD, 0)) return 2;
    if (cuMemAllocFromPoolAsync(&one, 512, pool, NULL) != CUDA_ERROR_INVALID_VALUE) return 3;
    if (cuMemPoolImportPointer(&one, pool, &shared.first)) return 4;
    if (cuMemPoolImportPointer(&two, pool, &shared.second)) return 5;
    if (cuMemcpyDtoH_v2(&back, one, 4) || back != 31337) return 6;
    if (cuMemcpyDtoH_v2(&back, two, 4) || back != 42) return 7;
    if (cuMemsetD32_v2(two, 99, 1) || cuCtxSynchronize()) return 8;
    return cuMemFreeAsync(two, NULL) || cuMemFree_v2(one) || !cuMemFree_v2(one) ? 9 : 0;
}

Test(simcuda_sharing, memory_of_a_pool_in_another_process) {
    struct shared shared;
    CUdeviceptr first, second;
    uint32_t back;
    int ends[2], status, same = memfd_create("handle", 0);
    cr_assert_eq(pipe(ends), 0);
    pid_t child = fork();
    if (!child) _exit(child_uses(ends[0]));
    proof_begin();
    CUmemoryPool pool = shared_pool(CU_MEM_HANDLE_POSIX_FD), own = shared_pool(0);
    REFUSED(cuMemPoolExportToShareableHandle(&shared.file, own, CU_MEM_HANDLE_POSIX_FD, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemPoolExportToShareableHandle(&shared.file, pool, CU_MEM_HANDLE_POSIX_FD, 0));
    char device[4];
    cr_assert_eq(pread(shared.file, device, 4, 0), 4);
    cr_assert_eq(write(same, device, 4), 4);
    shared.file = same; /* as if it came over a socket */
    OK(cuMemAllocFromPoolAsync(&first, 1000, pool, NULL));
    OK(cuMemAllocFromPoolAsync(&second, 1000, pool, NULL));
    OK(cuMemsetD32_v2(first, 31337, 1));
    OK(cuMemsetD32_v2(second, 42, 1));
    OK(cuCtxSynchronize());
    OK(cuMemPoolExportPointer(&shared.first, first));
    OK(cuMemPoolExportPointer(&shared.second, second));
    REFUSED(cuMemPoolExportPointer(&shared.second, second + 4), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(write(ends[1], &shared, sizeof shared), (ssize_t)sizeof shared);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    OK(cuMemcpyDtoH_v2(&back, second, 4));
    cr_assert_eq(back, 99);
}

/* ---- multicast */

static CUmemGenericAllocationHandle create(size_t bytes, int device) {
    CUmemAllocationProp prop = proof_prop(device);
    CUmemGenericAllocationHandle handle;
    OK(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

Test(simcuda_sharing, multicast) {
    CUmulticastObjectProp prop = {.numDevices = 2, .size = 4 * MIB};
    CUmemGenericAllocationHandle object;
    CUdeviceptr at;
    setenv("SIMCUDA_MULTICAST", "1", 1);
    setenv("SIMCUDA_DEVICES", "2", 1);
    proof_begin();
    uint64_t before = proof_usage(0).used;
    OK(cuMulticastCreate(&object, &prop));
    cr_assert_eq(proof_usage(0).used, before, "it has no memory of its own");
    CUmemGenericAllocationHandle here = create(4 * MIB, 0), there = create(2 * MIB, 1);
    REFUSED(cuMulticastBindMem(object, 0, here, 0, 4 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMulticastAddDevice(object, 0));
    OK(cuMulticastAddDevice(object, 1));
    OK(cuMulticastBindMem(object, 0, here, 0, 4 * MIB, 0));
    REFUSED(cuMulticastBindMem(object, 2 * MIB, here, 0, 2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuMulticastBindMem(object, 2 * MIB, there, 0, 2 * MIB, 0));
    OK(cuMemRelease(here));
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "a binding keeps it");
    OK(cuMulticastUnbind(object, 0, 0, 4 * MIB));
    cr_assert_eq(proof_usage(0).used, before);
    CUmemAccessDesc access = proof_access(0);
    OK(cuMemAddressReserve(&at, 4 * MIB, 0, 0, 0));
    OK(cuMemMap(at, 4 * MIB, 0, object, 0));
    OK(cuMemSetAccess(at, 4 * MIB, &access, 1));
    OK(cuMemRelease(there));
    OK(cuMemRelease(object));
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(cuMemUnmap(at, 4 * MIB));
    cr_assert_eq(proof_usage(1).used, 0, "gone with the last that held it");
}

Test(simcuda_sharing, no_multicast) {
    CUmulticastObjectProp prop = {.numDevices = 1, .size = 4 * MIB};
    CUmemGenericAllocationHandle object;
    proof_begin();
    REFUSED(cuMulticastCreate(&object, &prop), CUDA_ERROR_NOT_SUPPORTED);
}

/* ---- the rest */

Test(simcuda_sharing, a_capture_into_a_graph_that_is_there) {
    CUgraph graph, same;
    CUgraphExec exec;
    CUstream stream;
    CUdeviceptr at;
    uint32_t back;
    proof_begin();
    OK(cuMemAlloc_v2(&at, 512));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuGraphCreate(&graph, 0));
    for (uint32_t i = 0; i < 2; i++) {
        OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_CAPTURE_RELAXED));
        OK(cuMemsetD32Async(at + 4 * i, 7 + i, 1, stream));
        OK(cuStreamEndCapture(stream, &same));
        cr_assert_eq(same, graph);
    }
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    for (uint32_t i = 0; i < 2; i++) {
        OK(cuMemcpyDtoH_v2(&back, at + 4 * i, 4));
        cr_assert_eq(back, 7 + i);
    }
    OK(cuStreamBeginCaptureToGraph(stream, graph, NULL, NULL, 0, CU_CAPTURE_RELAXED));
    cr_assert_neq(cuStreamQuery(stream), 0); /* this breaks the capture */
    REFUSED(cuStreamEndCapture(stream, &same), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    OK(cuGraphDestroy(graph)); /* it is still the caller's */
}

Test(simcuda_sharing, addresses_below_4_gib) {
    unsigned at, other;
    uint32_t back;
    proof_begin();
    uint64_t before = proof_usage(0).used;
    OK(cuMemAlloc(&at, 1000));
    OK(cuMemAlloc(&other, 1000));
    cr_assert(at != other);
    OK(cuMemsetD32_v2(at, 5, 1));
    OK(cuMemcpyDtoH_v2(&back, at, 4));
    cr_assert_eq(back, 5);
    OK(cuMemFree(at));
    REFUSED(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFree_v2(other));
    cr_assert_eq(proof_usage(0).used, before);
}
