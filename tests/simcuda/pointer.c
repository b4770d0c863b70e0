/* pointer.c — the properties of a pointer, and the preferred place of managed memory. */
#include "sim.h"

#include <string.h>

/* The access flags of the current thread's device. */
static unsigned flags_of(const struct block *b, const struct sim_context *now) {
    if (!now) return 0;
    uint64_t self = (uint64_t)1 << now->device->id, owner = (uint64_t)1 << b->device->id;
    if (b->kind == KIND_PLAIN && now->peers & owner) self = owner;
    return b->writable & self ? 3 : b->readable & self ? 1 : 0;
}

/* For mapped memory, the range is the whole reservation (cuda.h), also if less of it is mapped. */
static void range_of(const struct block *b, CUdeviceptr at, CUdeviceptr *start, size_t *size) {
    *start = b->at;
    *size = b->kind == KIND_VMM ? b->size : b->asked;
    if (b->kind == KIND_VMM) space_reservation(at, start, size);
}

/* Reads one attribute. False: this pointer does not have it. */
static bool of_block(void *out, int which, const struct block *b, CUdeviceptr at) {
    CUdeviceptr start;
    size_t size;
    switch (which) {
    case CU_POINTER_CONTEXT:
        *(CUcontext *)out = b->kind == KIND_VMM || b->kind == KIND_POOL ? NULL : b->ctx;
        return true;
    case CU_POINTER_MEMORY_TYPE:
        *(unsigned *)out = CU_MEMORYTYPE_DEVICE;
        return true;
    case CU_POINTER_DEVICE_POINTER:
        *(CUdeviceptr *)out = at;
        return true;
    case CU_POINTER_HOST_POINTER:
        if (b->kind != KIND_MANAGED) return false;
        *(void **)out = (void *)(uintptr_t)at;
        return true;
    case CU_POINTER_SYNC_MEMOPS:
        *(unsigned char *)out = b->sync_memops;
        return true;
    case CU_POINTER_BUFFER_ID:
        *(uint64_t *)out = b->id;
        return true;
    case CU_POINTER_IS_MANAGED:
        *(unsigned *)out = b->kind == KIND_MANAGED;
        return true;
    case CU_POINTER_DEVICE_ORDINAL:
        *(int *)out = b->device->id;
        return true;
    case CU_POINTER_IPC_CAPABLE:
        *(unsigned *)out = b->kind == KIND_PLAIN;
        return true;
    case CU_POINTER_RANGE_START:
        range_of(b, at, out, &size);
        return true;
    case CU_POINTER_RANGE_SIZE:
        range_of(b, at, &start, out);
        return true;
    case CU_POINTER_MAPPED:
        *(unsigned *)out = 1;
        return true;
    case CU_POINTER_HANDLE_TYPES:
        *(uint64_t *)out = (uint64_t)b->phys->prop.requestedHandleTypes;
        return true;
    case CU_POINTER_RDMA_CAPABLE:
        *(unsigned *)out = b->kind == KIND_PLAIN || b->phys->prop.allocFlags.gpuDirectRDMACapable;
        return true;
    case CU_POINTER_ACCESS_FLAGS:
        *(unsigned *)out = flags_of(b, context_current());
        return true;
    case CU_POINTER_MEMPOOL_HANDLE:
        *(CUmemoryPool *)out = b->pool;
        return true;
    case CU_POINTER_MAPPING_SIZE:
        *(size_t *)out = b->size;
        return true;
    case CU_POINTER_MAPPING_BASE:
        *(CUdeviceptr *)out = b->at;
        return true;
    case CU_POINTER_MEMORY_BLOCK_ID:
        *(uint64_t *)out = b->id;
        return true;
    case CU_POINTER_DECOMPRESS_CAPABLE:
        *(unsigned *)out = 0;
        return true;
    default:
        return false;
    }
}

static bool of_host(void *out, int which, const struct pinned *p, CUdeviceptr at) {
    switch (which) {
    case CU_POINTER_CONTEXT:
        *(CUcontext *)out = p->ctx;
        return true;
    case CU_POINTER_MEMORY_TYPE:
        *(unsigned *)out = CU_MEMORYTYPE_HOST;
        return true;
    case CU_POINTER_DEVICE_POINTER:
        *(CUdeviceptr *)out = at;
        return true;
    case CU_POINTER_HOST_POINTER:
        *(void **)out = (void *)(uintptr_t)at;
        return true;
    case CU_POINTER_IS_MANAGED:
        *(unsigned *)out = 0;
        return true;
    case CU_POINTER_DEVICE_ORDINAL:
        *(int *)out = (p->ctx ? p->ctx : context_current())->device->id;
        return true;
    case CU_POINTER_RANGE_START:
        *(CUdeviceptr *)out = (uint64_t)(uintptr_t)p->at;
        return true;
    case CU_POINTER_RANGE_SIZE:
        *(size_t *)out = p->size;
        return true;
    case CU_POINTER_MAPPED:
        *(unsigned *)out = 1;
        return true;
    default:
        return false;
    }
}

static bool attribute(void *out, int which, CUdeviceptr at) {
    struct block *block = space_find(at);
    struct pinned *pinned = block ? NULL : host_find((void *)(uintptr_t)at);
    if (block && block->gone) return false;
    return block ? of_block(out, which, block, at) : pinned && of_host(out, which, pinned, at);
}

API(cuPointerGetAttribute, NEEDS_INIT, (void *out, int which, CUdeviceptr at), (out, which, at)) {
    return out && attribute(out, which, at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static size_t attribute_size(int which) {
    switch (which) {
    case CU_POINTER_MEMORY_TYPE:
    case CU_POINTER_IS_MANAGED:
    case CU_POINTER_DEVICE_ORDINAL:
    case CU_POINTER_IPC_CAPABLE:
    case CU_POINTER_MAPPED:
    case CU_POINTER_RDMA_CAPABLE:
    case CU_POINTER_ACCESS_FLAGS:
    case CU_POINTER_DECOMPRESS_CAPABLE:
        return 4;
    case CU_POINTER_SYNC_MEMOPS:
        return 1;
    default:
        return 8;
    }
}

/* For an unknown pointer the call succeeds. The device ordinal is -2, and all other attributes are 0. */
API(cuPointerGetAttributes, NEEDS_INIT, (unsigned count, int *which, void **out, CUdeviceptr at),
    (count, which, out, at)) {
    if (!count || !which || !out) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if (!attribute(out[i], which[i], at)) {
            memset(out[i], 0, attribute_size(which[i]));
            if (which[i] == CU_POINTER_DEVICE_ORDINAL) *(int *)out[i] = -2;
        }
    return CUDA_SUCCESS;
}

API(cuPointerSetAttribute, NEEDS_CONTEXT, (const void *value, int which, CUdeviceptr at), (value, which, at)) {
    struct block *block = space_find(at);
    if (!value || !block || which != CU_POINTER_SYNC_MEMOPS || block->kind == KIND_VMM) return CUDA_ERROR_INVALID_VALUE;
    block->sync_memops = *(const unsigned *)value;
    return CUDA_SUCCESS;
}

/* ---- managed memory */

static CUresult advise(CUdeviceptr at, size_t bytes) {
    struct block *block = space_find(at);
    bool good = block && block->kind == KIND_MANAGED && at + bytes <= block->at + block->size;
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SAME(cuMemAdvise, NEEDS_CONTEXT, (CUdeviceptr at, size_t bytes, int advice, CUdevice device),
     ((void)advice, (void)device, advise(at, bytes)))
SAME(cuMemAdvise_v2, NEEDS_CONTEXT, (CUdeviceptr at, size_t bytes, int advice, CUmemLocation location),
     ((void)advice, (void)location, advise(at, bytes)))

static CUresult prefetch(CUdeviceptr at, size_t bytes, bool to_device, CUstream handle) {
    struct block *block = space_find(at);
    CUresult result = advise(at, bytes);
    if (result) return result;
    if (!stream_get(handle)) return CUDA_ERROR_INVALID_HANDLE;
    if (to_device && !block->resident) block->resident = device_take(block->device, block->size, false);
    if (!to_device && block->resident) {
        device_give(block->device, block->size);
        block->resident = false;
    }
    return CUDA_SUCCESS;
}
#define PREFETCH CUdeviceptr at, size_t bytes, CUdevice device, CUstream stream
#define PREFETCH_V2 CUdeviceptr at, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream
#define IS_DEVICE ((void)flags, location.type == CU_MEM_LOCATION_DEVICE)
SAME(cuMemPrefetchAsync, NEEDS_CONTEXT, (PREFETCH), prefetch(at, bytes, device >= 0, stream))
SAME(cuMemPrefetchAsync_ptsz, NEEDS_CONTEXT, (PREFETCH), prefetch(at, bytes, device >= 0, stream_per_thread(stream)))
SAME(cuMemPrefetchAsync_v2, NEEDS_CONTEXT, (PREFETCH_V2), prefetch(at, bytes, IS_DEVICE, stream))
SAME(cuMemPrefetchAsync_v2_ptsz, NEEDS_CONTEXT, (PREFETCH_V2),
     prefetch(at, bytes, IS_DEVICE, stream_per_thread(stream)))
