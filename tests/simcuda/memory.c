/* memory.c — cuMemAlloc and similar entries: plain, pitched and managed memory, free memory, and the properties of a
 * pointer. Requests below 1 MiB share pieces of 2 MiB. Such a piece goes back when its last block is freed. */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 512 };

static uint64_t bit(const struct device *device) { return (uint64_t)1 << device->id; }

static CUresult map_new(struct sim_phys *phys, struct block model, struct block **out) {
    CUresult result = space_reserve(phys->size, 0, 0, &model.at);
    if (result) return result;
    model.device = phys->device;
    model.phys = phys;
    model.host = phys->host;
    model.size = phys->size;
    *out = space_add(model);
    return CUDA_SUCCESS;
}

static CUresult allocate_large(struct sim_context *ctx, size_t bytes, struct block **out) {
    struct sim_phys *phys = phys_new(ctx->device, round_up(bytes, GRANULE), false);
    if (!phys) return CUDA_ERROR_OUT_OF_MEMORY;
    struct block model = {.kind = KIND_PLAIN, .asked = bytes, .ctx = ctx};
    model.readable = model.writable = bit(ctx->device);
    CUresult result = map_new(phys, model, out);
    if (result) phys_unref(phys);
    return result;
}

static struct sim_phys *slab_new(struct device *device) {
    struct sim_phys *slab = phys_new(device, GRANULE, false);
    if (!slab) return NULL;
    if (space_reserve(GRANULE, 0, 0, &slab->slab_va)) {
        phys_unref(slab);
        return NULL;
    }
    extents_give(&slab->slab, 0, GRANULE);
    slab->next = device->slabs;
    return device->slabs = slab;
}

CUresult memory_slab(struct sim_context *ctx, size_t bytes, struct block **out) {
    size_t size = round_up(bytes, ALIGN);
    uint64_t offset = 0;
    struct sim_phys *slab = ctx->device->slabs;
    while (slab && !extents_take(&slab->slab, size, ALIGN, &offset)) slab = slab->next;
    if (!slab) {
        if (!(slab = slab_new(ctx->device))) return CUDA_ERROR_OUT_OF_MEMORY;
        extents_take(&slab->slab, size, ALIGN, &offset);
    }
    slab->slab_live++;
    *out = space_add((struct block){.at = slab->slab_va + offset,
                                    .size = size,
                                    .asked = bytes,
                                    .kind = KIND_PLAIN,
                                    .device = ctx->device,
                                    .ctx = ctx,
                                    .phys = slab,
                                    .host = slab->host + offset,
                                    .readable = bit(ctx->device),
                                    .writable = bit(ctx->device),
                                    .slab = true});
    phys_fill((*out)->host, size);
    return CUDA_SUCCESS;
}

static void slab_give(struct sim_phys *slab, uint64_t offset, size_t size) {
    extents_give(&slab->slab, offset, size);
    if (--slab->slab_live) return;
    struct sim_phys **link = &slab->device->slabs;
    while (*link != slab) link = &(*link)->next;
    *link = slab->next;
    space_release(slab->slab_va, GRANULE);
    phys_unref(slab);
}

CUresult memory_free(struct block *block) {
    struct sim_phys *phys = block->phys;
    CUdeviceptr at = block->at;
    size_t size = block->size;
    bool slab = block->slab;
    if (block->kind == KIND_MANAGED) {
        space_protect(at, size, 0, 0, false);
        if (block->resident) device_give(block->device, size);
    }
    space_remove(block);
    if (slab) {
        slab_give(phys, at - phys->slab_va, size);
        return CUDA_SUCCESS;
    }
    space_release(at, size);
    phys_unref(phys);
    return CUDA_SUCCESS;
}

void memory_forget(struct sim_context *ctx) {
    struct block *block;
    for (CUdeviceptr at = 0; (block = space_next(at));) {
        at = block->at + block->size;
        if (block->ctx == ctx && (block->kind == KIND_PLAIN || block->kind == KIND_MANAGED || block->kind == KIND_IPC))
            memory_free(block);
    }
}

static CUresult allocate(CUdeviceptr *out, size_t bytes) {
    struct sim_context *ctx = context_current();
    struct block *block;
    if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = bytes < MB ? memory_slab(ctx, bytes, &block) : allocate_large(ctx, bytes, &block);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && pool_make_room(ctx->device))
        result = bytes < MB ? memory_slab(ctx, bytes, &block) : allocate_large(ctx, bytes, &block);
    if (result) return result;
    *out = block->at;
    call_details(bytes, block->at);
    return CUDA_SUCCESS;
}
SAME(cuMemAlloc_v2, NEEDS_CONTEXT | UNSAFE, (CUdeviceptr * out, size_t bytes),
     (call_details(bytes, 0), allocate(out, bytes)))

/* Made-up entries. memstow does not know them, as it does not know the entries of later versions of CUDA. */
SAME(cuMemGetConjured, NEEDS_CONTEXT | UNSAFE, (CUdeviceptr * out, size_t bytes), allocate(out, bytes))
SAME(cuMemConjure, NEEDS_CONTEXT | UNSAFE, (CUdeviceptr * out, size_t bytes), allocate(out, bytes))

/* The interface of CUDA 2, with 32-bit addresses: its memory lies below 4 GiB. */
static CUresult allocate_low(unsigned *out, unsigned bytes) {
    struct sim_context *ctx = context_current();
    struct block model = {.kind = KIND_PLAIN, .asked = bytes, .ctx = ctx, .size = round_up(bytes, GRANULE)};
    if (!out || !bytes) return CUDA_ERROR_INVALID_VALUE;
    if (space_reserve_low(model.size, &model.at)) return CUDA_ERROR_OUT_OF_MEMORY;
    model.phys = phys_new(ctx->device, model.size, false);
    if (!model.phys) {
        space_release(model.at, model.size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    model.device = ctx->device;
    model.host = model.phys->host;
    model.readable = model.writable = bit(ctx->device);
    space_add(model);
    *out = (unsigned)model.at;
    call_details(bytes, model.at);
    return CUDA_SUCCESS;
}
SAME(cuMemAlloc, NEEDS_CONTEXT | UNSAFE, (unsigned *out, unsigned bytes), allocate_low(out, bytes))
SAME(cuMemGetInfo, NEEDS_CONTEXT, (unsigned *available, unsigned *total),
     ((void)available, (void)total, CUDA_ERROR_NOT_SUPPORTED))

API(cuMemAllocPitch_v2, NEEDS_CONTEXT | UNSAFE,
    (CUdeviceptr * out, size_t *pitch, size_t width, size_t height, unsigned element),
    (out, pitch, width, height, element)) {
    if (!out || !pitch || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = round_up(width, ALIGN);
    return allocate(out, *pitch * height);
}

/* The host can read managed memory, too. Managed memory takes capacity of the device only while it is there. */
static struct sim_phys *managed_new(struct device *device, size_t size) {
    int fd = memfd_create("simcuda-managed", MFD_CLOEXEC);
    struct sim_phys *phys = fd < 0 || ftruncate(fd, (off_t)size) ? NULL : phys_import(device, fd, 0, size);
    if (!phys && fd >= 0) close(fd);
    return phys;
}

CUresult managed_take(CUdeviceptr *out, size_t bytes, struct device *device, struct block model) {
    struct sim_phys *phys = managed_new(device, round_up(bytes, GRANULE));
    struct block *block;
    if (!phys) return CUDA_ERROR_OUT_OF_MEMORY;
    model.kind = KIND_MANAGED;
    model.asked = bytes;
    model.readable = model.writable = ~0ull;
    CUresult result = map_new(phys, model, &block);
    if (result) return result;
    space_protect(block->at, block->size, phys->fd, 0, true);
    *out = block->at;
    call_details(bytes, block->at);
    return CUDA_SUCCESS;
}

API(cuMemAllocManaged, NEEDS_CONTEXT | UNSAFE, (CUdeviceptr * out, size_t bytes, unsigned flags), (out, bytes, flags)) {
    struct sim_context *ctx = context_current();
    if (!out || !bytes || (flags != 1 && flags != 2)) return CUDA_ERROR_INVALID_VALUE;
    return managed_take(out, bytes, ctx->device, (struct block){.ctx = ctx});
}

static CUresult release(CUdeviceptr at) {
    if (!at) return CUDA_SUCCESS;
    struct block *block = space_find(at);
    bool is_part = block && block->kind == KIND_IPC && block->pool; /* it starts inside the mapped pool */
    if (!block || (block->at != at && !is_part) || block->gone) return CUDA_ERROR_INVALID_VALUE;
    call_details(block->asked, at);
    switch (block->kind) {
    case KIND_PLAIN:
    case KIND_MANAGED: /* waits for all work of the context */
        engine_drain_context(context_current());
        return memory_free(block);
    case KIND_POOL: /* does not wait */
        pool_free_now(block);
        return CUDA_SUCCESS;
    case KIND_GRAPH:
        gmem_dead(block->gmem);
        return CUDA_SUCCESS;
    case KIND_IPC: /* frees only memory of another process's pool; other opened memory needs cuIpcCloseMemHandle */
        return block->pool ? memory_free(block) : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
SAME(cuMemFree_v2, NEEDS_CONTEXT | UNSAFE, (CUdeviceptr at), release(at))
SAME(cuMemFree, NEEDS_CONTEXT | UNSAFE, (unsigned at), release(at))

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, uint64_t);
CUresult sim_cuMemAddressReserve(CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t);
CUresult sim_cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
__attribute__((visibility("default"))) void *sim_inner_entry(const char *name) {
    if (strcmp(name, "cuMemAllocAsync") == 0) return (void *)sim_cuMemAllocAsync;
    if (strcmp(name, "cuMemCreate") == 0) return (void *)sim_cuMemCreate;
    if (strcmp(name, "cuMemAddressReserve") == 0) return (void *)sim_cuMemAddressReserve;
    return strcmp(name, "cuMemAlloc") == 0 ? (void *)sim_cuMemAlloc_v2 : (void *)sim_cuMemFree_v2;
}

API(cuMemGetInfo_v2, NEEDS_CONTEXT, (size_t * available, size_t *total), (available, total)) {
    struct device *device = context_current()->device;
    if (!available || !total) return CUDA_ERROR_INVALID_VALUE;
    *total = device->capacity;
    *available = device->capacity > device->used ? device->capacity - device->used : 0;
    return CUDA_SUCCESS;
}

API(cuMemGetAddressRange_v2, NEEDS_CONTEXT, (CUdeviceptr * base, size_t *size, CUdeviceptr at), (base, size, at)) {
    struct block *block = space_find(at);
    struct pinned *pinned = host_find((void *)(uintptr_t)at);
    if (pinned) {
        if (base) *base = (uint64_t)(uintptr_t)pinned->at;
        if (size) *size = pinned->size;
        return CUDA_SUCCESS;
    }
    if (!block || block->kind == KIND_ARRAY) return CUDA_ERROR_NOT_FOUND;
    if (base) *base = block->at;
    if (size) *size = block->kind == KIND_VMM ? block->size : block->asked;
    return CUDA_SUCCESS;
}
