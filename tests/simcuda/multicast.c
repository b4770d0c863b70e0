/* multicast.c — multicast objects, which bind together memory of several devices. In: devices that are added, and
 * memory that is bound, in whole granules. Out: bindings, which keep the memory alive as a mapping does. An object has
 * no memory of its own. Only certain instructions of kernels can use a mapping of an object. The simulated kernels have
 * no such instructions, so every access is a fault. */
#include "sim.h"

#include <stdlib.h>

struct binding {
    struct binding *next;
    uint64_t offset, size;
    int device;
    struct sim_phys *memory;
};

struct sim_multicast {
    unsigned wanted; /* devices */
    uint64_t devices;
    size_t size;
    struct binding *bindings;
};

static bool is_good(const CUmulticastObjectProp *prop) {
    return prop && prop->numDevices && prop->size && prop->size % GRANULE == 0 && !prop->flags;
}

API(cuMulticastCreate, NEEDS_INIT, (CUmemGenericAllocationHandle * out, const CUmulticastObjectProp *prop),
    (out, prop)) {
    if (!sim_config.multicast) return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !is_good(prop) || prop->numDevices > (unsigned)sim_config.devices) return CUDA_ERROR_INVALID_VALUE;
    struct sim_multicast *self = calloc(1, sizeof *self);
    struct sim_phys *phys = calloc(1, sizeof *phys);
    if (!self || !phys) abort();
    *self = (struct sim_multicast){.wanted = prop->numDevices, .size = prop->size};
    *phys = (struct sim_phys){.device = device_get(0), .size = prop->size, .fd = -1, .refs = 1, .multicast = self};
    *out = handle_add(phys);
    call_details(prop->size, *out);
    return CUDA_SUCCESS;
}

bool multicast_complete(const struct sim_multicast *self) {
    return (unsigned)__builtin_popcountll(self->devices) == self->wanted;
}

void multicast_drop(struct sim_multicast *self) {
    for (struct binding *binding = self->bindings, *next; binding; binding = next) {
        next = binding->next;
        handle_unref(binding->memory);
        free(binding);
    }
    free(self);
}

static struct sim_multicast *find(CUmemGenericAllocationHandle handle) {
    struct sim_phys *phys = handle_find(handle);
    return phys ? phys->multicast : NULL;
}

API(cuMulticastAddDevice, NEEDS_INIT, (CUmemGenericAllocationHandle handle, CUdevice device), (handle, device)) {
    struct sim_multicast *self = find(handle);
    if (!self || self->bindings || multicast_complete(self)) return CUDA_ERROR_INVALID_VALUE;
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    self->devices |= (uint64_t)1 << device;
    return CUDA_SUCCESS;
}

static CUresult bind(CUmemGenericAllocationHandle handle, size_t offset, struct sim_phys *memory, size_t size) {
    struct sim_multicast *self = find(handle);
    if (!self || !memory || memory->multicast || !multicast_complete(self)) return CUDA_ERROR_INVALID_VALUE;
    if (!size || size % GRANULE || offset % GRANULE || offset + size > self->size) return CUDA_ERROR_INVALID_VALUE;
    if (!(self->devices >> memory->device->id & 1)) return CUDA_ERROR_INVALID_DEVICE;
    for (struct binding *other = self->bindings; other; other = other->next)
        if (other->device == memory->device->id && offset < other->offset + other->size &&
            other->offset < offset + size)
            return CUDA_ERROR_INVALID_VALUE;
    struct binding *binding = malloc(sizeof *binding);
    if (!binding) abort();
    *binding = (struct binding){self->bindings, offset, size, memory->device->id, memory};
    memory->refs++;
    self->bindings = binding;
    return CUDA_SUCCESS;
}

static CUresult bind_memory(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle of,
                            size_t from, size_t size) {
    struct sim_phys *memory = handle_find(of);
    if (!memory || from % GRANULE || from + size > memory->size) return CUDA_ERROR_INVALID_VALUE;
    return bind(handle, offset, memory, size);
}
SAME(cuMulticastBindMem, NEEDS_INIT,
     (CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory, size_t from, size_t size,
      uint64_t flags),
     flags ? CUDA_ERROR_INVALID_VALUE : bind_memory(handle, offset, memory, from, size))

static CUresult bind_address(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr at, size_t size) {
    struct block *block = space_find(at);
    if (!block || block->kind != KIND_VMM || at + size > block->at + block->size) return CUDA_ERROR_INVALID_VALUE;
    return bind(handle, offset, block->phys, size);
}
SAME(cuMulticastBindAddr, NEEDS_INIT,
     (CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr at, size_t size, uint64_t flags),
     flags ? CUDA_ERROR_INVALID_VALUE : bind_address(handle, offset, at, size))

/* Since CUDA 13.1 the call names the device, too: it must be the memory's device. */
static bool is_of(const struct sim_phys *memory, CUdevice device) { return memory && memory->device->id == device; }

SAME(cuMulticastBindMem_v2, NEEDS_INIT,
     (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, CUmemGenericAllocationHandle memory,
      size_t from, size_t size, uint64_t flags),
     flags || !is_of(handle_find(memory), device) ? CUDA_ERROR_INVALID_VALUE
                                                  : bind_memory(handle, offset, memory, from, size))

static bool is_at(CUdeviceptr at, CUdevice device) {
    struct block *block = space_find(at);
    return block && block->kind == KIND_VMM && is_of(block->phys, device);
}
SAME(cuMulticastBindAddr_v2, NEEDS_INIT,
     (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, CUdeviceptr at, size_t size, uint64_t flags),
     flags || !is_at(at, device) ? CUDA_ERROR_INVALID_VALUE : bind_address(handle, offset, at, size))

/* Endpoints are not simulated: a program can bind device memory to an endpoint of any number. */
SAME(cuLogicalEndpointBindMem, NEEDS_INIT,
     (unsigned endpoint, CUdevice device, uint64_t offset, CUmemGenericAllocationHandle memory, uint64_t from,
      uint64_t size, uint64_t flags),
     ((void)endpoint, (void)offset, (void)from,
      flags || !size || !is_of(handle_find(memory), device) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS))
SAME(cuLogicalEndpointBindAddr, NEEDS_INIT,
     (unsigned endpoint, CUdevice device, uint64_t offset, void *at, uint64_t size, uint64_t flags),
     ((void)endpoint, (void)offset,
      flags || !size || !is_at((CUdeviceptr)at, device) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS))

API(cuMulticastUnbind, NEEDS_INIT, (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size),
    (handle, device, offset, size)) {
    struct sim_multicast *self = find(handle);
    for (struct binding **link = self ? &self->bindings : NULL; link && *link; link = &(*link)->next) {
        struct binding *binding = *link;
        if (binding->device != device || binding->offset != offset || binding->size != size) continue;
        *link = binding->next;
        handle_unref(binding->memory);
        free(binding);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

API(cuMulticastGetGranularity, NEEDS_INIT, (size_t * out, const CUmulticastObjectProp *prop, int option),
    (out, prop, option)) {
    if (!sim_config.multicast) return CUDA_ERROR_NOT_SUPPORTED;
    if (!out || !is_good(prop) || option < 0 || option > 1) return CUDA_ERROR_INVALID_VALUE;
    *out = GRANULE;
    return CUDA_SUCCESS;
}
