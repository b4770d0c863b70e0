/* serve.c — see serve.h. */
#include "preload/serve/serve.h"

#include "preload/serve/serve_entries.h"

__thread struct serve_call serve_call __attribute__((tls_model("initial-exec")));

static void *serve_function(enum cuda_entry_id entry) {
    switch (entry) {
    case CUDA_ENTRY_cuMemAlloc_v2:
        return (void *)serve_alloc;
    case CUDA_ENTRY_cuMemAllocAsync:
    case CUDA_ENTRY_cuMemAllocAsync_ptsz:
        return (void *)serve_alloc_async;
    case CUDA_ENTRY_cuMemAllocFromPoolAsync:
    case CUDA_ENTRY_cuMemAllocFromPoolAsync_ptsz:
        return (void *)serve_from_pool;
    case CUDA_ENTRY_cuMemAllocPitch_v2:
        return (void *)serve_pitch;
    case CUDA_ENTRY_cuMemCreate:
        return (void *)serve_create;
    case CUDA_ENTRY_cuMemAllocManaged:
        return (void *)serve_managed;
    case CUDA_ENTRY_cuArrayCreate_v2:
    case CUDA_ENTRY_cuArray3DCreate_v2:
        return (void *)serve_array;
    case CUDA_ENTRY_cuMipmappedArrayCreate:
        return (void *)serve_mipmapped;
    case CUDA_ENTRY_cuMemFree_v2:
        return (void *)serve_free;
    case CUDA_ENTRY_cuMemFreeAsync:
    case CUDA_ENTRY_cuMemFreeAsync_ptsz:
        return (void *)serve_free_async;
    case CUDA_ENTRY_cuMemGetInfo_v2:
        return (void *)serve_info;
    case CUDA_ENTRY_cuMemPoolGetAttribute:
        return (void *)serve_pool;
    case CUDA_ENTRY_cuMemPoolSetAttribute:
        return (void *)serve_pool_set;
    case CUDA_ENTRY_cuMemPoolTrimTo:
        return (void *)serve_trim;
    case CUDA_ENTRY_cuMemGetAddressRange_v2:
        return (void *)serve_range;
    case CUDA_ENTRY_cuPointerGetAttribute:
        return (void *)serve_attribute;
    case CUDA_ENTRY_cuPointerGetAttributes:
        return (void *)serve_attributes;
    case CUDA_ENTRY_cuPointerSetAttribute:
        return (void *)serve_set_attribute;
    case CUDA_ENTRY_cuCtxEnablePeerAccess:
        return (void *)serve_peer;
    case CUDA_ENTRY_cuMemPoolSetAccess:
        return (void *)serve_pool_access;
    case CUDA_ENTRY_cuMemRetainAllocationHandle:
        return (void *)serve_retain;
    case CUDA_ENTRY_cuMulticastBindAddr:
        return (void *)serve_bind;
    case CUDA_ENTRY_cuMulticastBindAddr_v2:
        return (void *)serve_bind_of_device;
    case CUDA_ENTRY_cuLogicalEndpointBindAddr:
        return (void *)serve_bind_endpoint;
    case CUDA_ENTRY_cuMemGetHandleForAddressRange:
        return (void *)serve_share;
    case CUDA_ENTRY_cuIpcGetMemHandle:
        return (void *)serve_export;
    default:
        return NULL;
    }
}

void *serve_instead(enum cuda_entry_id entry, void *real, uintptr_t caller) {
    void *ours = serve_function(entry);
    if (!ours) return real;
    serve_call.real = real;
    serve_call.caller = caller;
    serve_call.per_thread = cuda_entries[entry].per_thread;
    return ours;
}
