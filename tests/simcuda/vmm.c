/* vmm.c — virtual memory management: ranges of addresses, handles of physical memory, and mappings between them. A
 * mapping begins at offset 0 of its handle, and ends as a whole; a fresh mapping has no access. NVIDIA does not say
 * which of these calls a capture forbids: here it forbids all calls that change something. */
#include "sim.h"

#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>
#include <fcntl.h>

static struct sim_phys *handles;
static uint64_t next_handle = 0x100;

struct sim_phys *handle_find(CUmemGenericAllocationHandle handle) {
    for (struct sim_phys *self = handles; self; self = self->next)
        if (self->handle == handle && self->handle_refs) return self;
    return NULL;
}

/* A piece stays in the list while it is mapped, because the program can get its handle again. */
void handle_unref(struct sim_phys *self) {
    struct sim_phys **link = &handles;
    if (self->refs == 1) {
        while (*link && *link != self) link = &(*link)->next;
        if (*link) *link = self->next;
    }
    phys_unref(self);
}

CUmemGenericAllocationHandle handle_add(struct sim_phys *self) {
    self->handle = next_handle++;
    self->handle_refs = 1;
    self->next = handles;
    handles = self;
    return self->handle;
}

API(cuMemGetAllocationGranularity, NEEDS_INIT, (size_t * out, const CUmemAllocationProp *prop, int option),
    (out, prop, option)) {
    if (!out || !prop || option < 0 || option > 1 || !device_get(prop->location.id)) return CUDA_ERROR_INVALID_VALUE;
    *out = GRANULE;
    return CUDA_SUCCESS;
}

TOLD(cuMemAddressReserve, NEEDS_INIT, (CUdeviceptr * out, size_t size, size_t align, CUdeviceptr hint, uint64_t flags),
     (out, size, align, hint, flags)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    call_details(size, hint);
    if (!out || !size || size % GRANULE || flags || (align & (align - 1))) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = space_reserve(size, align, hint, out);
    if (result) return result;
    space_reserved_add(*out, size);
    call_details(size, *out);
    return CUDA_SUCCESS;
}

TOLD(cuMemAddressFree, NEEDS_INIT, (CUdeviceptr at, size_t size), (at, size)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    call_details(size, at);
    if (!space_is_reserved(at, size, true)) return CUDA_ERROR_INVALID_VALUE;
    struct block *block = space_next(at);
    if (block && block->at < at + size) return CUDA_ERROR_INVALID_VALUE; /* something is mapped */
    space_reserved_remove(at);
    space_release(at, size);
    return CUDA_SUCCESS;
}

TOLD(cuMemCreate, NEEDS_INIT,
     (CUmemGenericAllocationHandle * out, size_t size, const CUmemAllocationProp *prop, uint64_t flags),
     (out, size, prop, flags)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    call_details(size, 0);
    if (!out || !prop || !size || size % GRANULE || flags || prop->type != CU_MEM_ALLOCATION_PINNED ||
        prop->location.type != CU_MEM_LOCATION_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    struct device *device = device_get(prop->location.id);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    struct sim_phys *self = phys_new(device, size, prop->requestedHandleTypes & CU_MEM_HANDLE_POSIX_FD);
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    self->prop = *prop;
    *out = handle_add(self);
    call_details(size, *out);
    return CUDA_SUCCESS;
}

TOLD(cuMemRelease, NEEDS_INIT, (CUmemGenericAllocationHandle handle), (handle)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    struct sim_phys *self = handle_find(handle);
    if (!self) return CUDA_ERROR_INVALID_VALUE;
    call_details(self->size, handle);
    self->handle_refs--;
    handle_unref(self);
    return CUDA_SUCCESS;
}

TOLD(cuMemMap, NEEDS_INIT,
     (CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle, uint64_t flags),
     (at, size, offset, handle, flags)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    call_details(size, at);
    struct sim_phys *self = handle_find(handle);
    if (self && self->multicast && !multicast_complete(self->multicast)) return CUDA_ERROR_INVALID_VALUE;
    if (!self || offset || flags || !size || size % GRANULE || at % GRANULE || size > self->size ||
        !space_is_reserved(at, size, false))
        return CUDA_ERROR_INVALID_VALUE;
    struct block *block = space_next(at);
    if (block && block->at < at + size) return CUDA_ERROR_INVALID_VALUE;
    self->refs++;
    space_add((struct block){.at = at,
                             .size = size,
                             .asked = size,
                             .kind = KIND_VMM,
                             .device = self->device,
                             .phys = self,
                             .host = self->host});
    return CUDA_SUCCESS;
}

/* Whether [at, at + size) consists of whole mappings. */
static bool whole_mappings(CUdeviceptr at, size_t size) {
    for (CUdeviceptr end = at + size; at < end;) {
        struct block *block = space_next(at);
        if (!block || block->at != at || block->kind != KIND_VMM || at + block->size > end) return false;
        at += block->size;
    }
    return size > 0;
}

/* With SIMCUDA_DRAINS some calls wait for all work on all devices. cuda.h allows this, and it was reported of real
 * drivers. */
static void drain(void) {
    for (struct sim_context *self = context_list; self && sim_config.drains; self = self->next)
        if (self->alive) engine_drain_context(self);
}

TOLD(cuMemUnmap, NEEDS_INIT, (CUdeviceptr at, size_t size), (at, size)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    drain();
    call_details(size, at);
    if (!whole_mappings(at, size)) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr end = at + size; at < end;) {
        struct block *block = space_find(at);
        struct sim_phys *self = block->phys;
        at += block->size;
        space_remove(block);
        handle_unref(self);
    }
    return CUDA_SUCCESS;
}

static CUresult grant(struct block *block, const CUmemAccessDesc *desc) {
    struct device *device = device_get(desc->location.id);
    if (desc->location.type != CU_MEM_LOCATION_DEVICE || !device) return CUDA_ERROR_INVALID_VALUE;
    if (device != block->device && !device_peers(device->id, block->device->id)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t mask = (uint64_t)1 << device->id;
    block->readable = desc->flags & CU_MEM_ACCESS_READ ? block->readable | mask : block->readable & ~mask;
    block->writable = desc->flags == CU_MEM_ACCESS_READWRITE ? block->writable | mask : block->writable & ~mask;
    return CUDA_SUCCESS;
}

API(cuMemSetAccess, NEEDS_INIT, (CUdeviceptr at, size_t size, const CUmemAccessDesc *desc, size_t count),
    (at, size, desc, count)) {
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    drain();
    call_details(size, at);
    if (!desc || !count || !whole_mappings(at, size)) return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr end = at + size; at < end;) {
        struct block *block = space_find(at);
        for (size_t i = 0; i < count; i++) {
            CUresult result = grant(block, &desc[i]);
            if (result) return result;
        }
        at += block->size;
    }
    return CUDA_SUCCESS;
}

API(cuMemGetAccess, NEEDS_INIT, (unsigned long long *out, const CUmemLocation *location, CUdeviceptr at),
    (out, location, at)) {
    struct block *block = space_find(at);
    if (!out || !location || !block || !device_get(location->id)) return CUDA_ERROR_INVALID_VALUE;
    uint64_t mask = (uint64_t)1 << location->id;
    *out = block->writable & mask ? CU_MEM_ACCESS_READWRITE : block->readable & mask ? CU_MEM_ACCESS_READ : 0;
    return CUDA_SUCCESS;
}

TOLD(cuMemRetainAllocationHandle, NEEDS_INIT, (CUmemGenericAllocationHandle * out, void *at), (out, at)) {
    struct block *block = space_find((uint64_t)(uintptr_t)at);
    if (!out || !block || block->kind != KIND_VMM) return CUDA_ERROR_INVALID_VALUE;
    block->phys->refs++;
    block->phys->handle_refs++;
    *out = block->phys->handle;
    return CUDA_SUCCESS;
}

API(cuMemGetAllocationPropertiesFromHandle, NEEDS_INIT,
    (CUmemAllocationProp * out, CUmemGenericAllocationHandle handle), (out, handle)) {
    struct sim_phys *self = handle_find(handle);
    if (!out || !self) return CUDA_ERROR_INVALID_VALUE;
    *out = self->prop;
    return CUDA_SUCCESS;
}

API(cuMemExportToShareableHandle, NEEDS_INIT,
    (void *out, CUmemGenericAllocationHandle handle, int type, uint64_t flags), (out, handle, type, flags)) {
    struct sim_phys *self = handle_find(handle);
    if (!out || !self || flags || type != CU_MEM_HANDLE_POSIX_FD || !(self->prop.requestedHandleTypes & type))
        return CUDA_ERROR_INVALID_VALUE;
    int fd = fcntl(self->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

/* Gives the caller a DMA-BUF for network cards. Mapped memory has a DMA-BUF only if it was made for network cards. */
API(cuMemGetHandleForAddressRange, NEEDS_INIT, (void *out, CUdeviceptr at, size_t size, int type, uint64_t flags),
    (out, at, size, type, flags)) {
    struct block *block = space_find(at);
    if (!out || !block || type != 1 || flags || at + size > block->at + block->size) return CUDA_ERROR_INVALID_VALUE;
    if (block->kind != KIND_VMM || !block->phys->prop.allocFlags.gpuDirectRDMACapable) return CUDA_ERROR_NOT_SUPPORTED;
    int own = block->phys->fd >= 0 ? block->phys->fd : block->device->fd, fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)out = fd;
    return CUDA_SUCCESS;
}

/* `os_handle` is the descriptor itself, not a pointer to it. The descriptor stays the caller's. */
TOLD(cuMemImportFromShareableHandle, NEEDS_INIT, (CUmemGenericAllocationHandle * out, void *os_handle, int type),
     (out, os_handle, type)) {
    struct stat status;
    int fd = (int)(intptr_t)os_handle;
    if (!out || type != CU_MEM_HANDLE_POSIX_FD || fstat(fd, &status) || status.st_size % (off_t)GRANULE)
        return CUDA_ERROR_INVALID_VALUE;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct sim_phys *self = own < 0 ? NULL : phys_import(device_get(0), own, 0, (size_t)status.st_size);
    if (!self) return CUDA_ERROR_OPERATING_SYSTEM;
    self->prop = (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_PINNED, .requestedHandleTypes = type, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    *out = handle_add(self);
    return CUDA_SUCCESS;
}
