/* serve_others.c — stand-ins for entries that let other devices and processes reach memory (serve_entries.h). */
#include "preload/base/notice.h"
#include "preload/base/seal.h"
#include "preload/cuda/cuda_device.h"
#include "preload/serve/serve_contexts.h"
#include "preload/serve/serve_driver.h"
#include "preload/serve/serve_entries.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_reach.h"
#include "preload/vram/vram_refusal.h"
#include "preload/base/forked.h"

/* --- access from other devices --- */

/* Stands in for cuCtxEnablePeerAccess. The device that gets access to the peer's memory also gets access to served
 * memory, even to blocks that were served before serving was turned off. If that fails, access to the peer is ended
 * again, and the program gets the error. */
int serve_peer(cuda_handle peer, unsigned flags) {
    int result = ((int (*)(cuda_handle, unsigned))serve_call.real)(peer, flags);
    if (result) return result;
    struct cuda_target target = cuda_device_now();
    serve_contexts_note(&target);
    result = vram_memory_reach();
    if (result && serve_driver.end_peer) serve_driver.end_peer(peer);
    return result;
}

/* Stands in for cuMemPoolSetAccess. The program calls it only once, perhaps before memory can be served. So this notes
 * the access even if memory cannot be served now. */
int serve_pool_access(cuda_handle pool, const struct vram_access *access, size_t count) {
    typedef int function(cuda_handle, const struct vram_access *, size_t);
    int result = ((function *)serve_call.real)(pool, access, count), there = 0;
    int (*how_many)(int *) = (int (*)(int *))serve_driver_function("cuDeviceGetCount");
    int (*ask)(cuda_handle *, int) = (int (*)(cuda_handle *, int))serve_driver_function("cuDeviceGetDefaultMemPool");
    uint32_t device;
    if (result || !how_many || !ask || how_many(&there) || !serve_driver_pool_device(ask, there, pool, &device))
        return result;
    for (size_t i = 0; i < count; i++)
        if (access[i].location_type == CUDA_LOCATION_DEVICE)
            vram_reach_pool(device, (uint32_t)access[i].location_id, access[i].flags != 0);
    return vram_memory_reach();
}

/* --- calls that make the memory reachable for another device or process: from then on, it must not move --- */

int serve_retain(cuda_memory *memory, void *at) {
    int (*real)(cuda_memory *, void *) = (int (*)(cuda_memory *, void *))serve_call.real;
    int result = real(memory, at);
    if (!result) vram_refusal_note((uintptr_t)at, VRAM_REFUSAL_HANDLE);
    return result;
}

int serve_bind(cuda_memory to, size_t offset, cuda_address at, size_t bytes, unsigned long long flags) {
    typedef int function(cuda_memory, size_t, cuda_address, size_t, unsigned long long);
    int result = ((function *)serve_call.real)(to, offset, at, bytes, flags);
    if (!result) vram_refusal_note(at, VRAM_REFUSAL_MULTICAST);
    return result;
}

int serve_bind_of_device(cuda_memory to, int device, size_t offset, cuda_address at, size_t bytes,
                         unsigned long long flags) {
    typedef int function(cuda_memory, int, size_t, cuda_address, size_t, unsigned long long);
    int result = ((function *)serve_call.real)(to, device, offset, at, bytes, flags);
    if (!result) vram_refusal_note(at, VRAM_REFUSAL_MULTICAST);
    return result;
}

int serve_bind_endpoint(unsigned to, int device, uint64_t offset, void *at, uint64_t bytes, unsigned long long flags) {
    typedef int function(unsigned, int, uint64_t, void *, uint64_t, unsigned long long);
    int result = ((function *)serve_call.real)(to, device, offset, at, bytes, flags);
    if (!result) vram_refusal_note((uintptr_t)at, VRAM_REFUSAL_MULTICAST);
    return result;
}

int serve_share(void *shared, cuda_address at, size_t bytes, int type, unsigned long long flags) {
    typedef int function(void *, cuda_address, size_t, int, unsigned long long);
    int result = ((function *)serve_call.real)(shared, at, bytes, type, flags);
    if (!result) vram_refusal_note(at, VRAM_REFUSAL_EXPORTED);
    return result;
}

static bool told_of_export;

/* Says once why the export failed, because the driver's error does not tell the user that memstow is the cause. */
static void tell_of_export(void) {
    struct notice line;
    if (seal_is_set() || __atomic_exchange_n(&told_of_export, true, __ATOMIC_RELAXED)) return;
    notice_begin(&line);
    notice_put(&line, "cuIpcGetMemHandle cannot export memory that memstow serves: ");
    notice_put(&line, "set MEMSTOW_CUDA_IPC=1, and it can export memory of cudaMalloc, which then does not move");
    notice_write(&line);
}

int serve_export(struct cuda_ipc_memory *handle, cuda_address at) {
    int (*real)(struct cuda_ipc_memory *, cuda_address) =
        (int (*)(struct cuda_ipc_memory *, cuda_address))serve_call.real;
    int result = real(handle, at);
    struct vram_found block;
    if (!result) vram_refusal_note(at, VRAM_REFUSAL_EXPORTED);
    if (result && vram_memory_around(at, &block)) tell_of_export();
    return result;
}

static void serve_others_abandon(void) { told_of_export = false; }
FORKED(serve_others_abandon);
