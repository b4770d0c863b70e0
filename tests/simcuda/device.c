/* device.c — the simulated devices: how many, what they say about themselves, and how much memory is left of each. */
#include "sim.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct device sim_devices[MAX_DEVICES];

struct device *device_get(int id) {
    return id >= 0 && id < sim_config.devices ? &sim_devices[id] : NULL;
}

bool device_peers(int a, int b) { return a != b && sim_config.peers && device_get(a) && device_get(b); }

bool device_take(struct device *self, size_t bytes, bool small) {
    size_t out_of_reach = small ? 0 : self->fragmented;
    if (self->used + bytes + out_of_reach > self->capacity) return false;
    self->used += bytes;
    return true;
}

void device_give(struct device *self, size_t bytes) { self->used -= bytes; }

/* Makes a device. A file takes the place of its memory. Each piece of memory (phys.c) consists of neighbouring pages of
 * the file. The file is larger than the device's memory, so that a new piece always finds such pages. A real device has
 * page tables, so its pieces can consist of any pages. */
static CUresult begin(struct device *self, int id) {
    size_t room = sim_config.capacity * 4 + 64 * GRANULE;
    *self = (struct device){.id = id, .capacity = sim_config.capacity, .fragmented = sim_config.fragmented};
    self->fd = memfd_create("simcuda-device", MFD_CLOEXEC);
    struct stat file;
    if (self->fd < 0 || ftruncate(self->fd, (off_t)room) || fstat(self->fd, &file)) return CUDA_ERROR_OPERATING_SYSTEM;
    self->file = file.st_ino;
    self->alias = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, self->fd, 0);
    if (self->alias == MAP_FAILED) return CUDA_ERROR_OPERATING_SYSTEM;
    extents_give(&self->free, 0, room);
    pool_begin(self);
    return CUDA_SUCCESS;
}

CUresult device_begin(void) {
    CUresult result = CUDA_SUCCESS;
    for (int id = 0; id < sim_config.devices && !result; id++) result = begin(&sim_devices[id], id);
    return result;
}

API(cuDeviceGetCount, NEEDS_INIT, (int *out), (out)) {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = sim_config.devices;
    return CUDA_SUCCESS;
}

API(cuDeviceGet, NEEDS_INIT, (CUdevice * out, int ordinal), (out, ordinal)) {
    if (!device_get(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
    *out = ordinal;
    return CUDA_SUCCESS;
}

API(cuDeviceGetName, NEEDS_INIT, (char *out, int room, CUdevice device), (out, room, device)) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)room, "Simulated device %d (test double)", device);
    return CUDA_SUCCESS;
}

/* An instance of a device (MIG) has a uuid of its own, which only cuDeviceGetUuid_v2 returns. */
static CUresult uuid(CUuuid *out, CUdevice device, bool of_instance) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(out->bytes, of_instance ? "simulated-slice" : "simulated-device", 16);
    out->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}
SAME(cuDeviceGetUuid, NEEDS_INIT, (CUuuid * out, CUdevice device), uuid(out, device, false))
SAME(cuDeviceGetUuid_v2, NEEDS_INIT, (CUuuid * out, CUdevice device), uuid(out, device, sim_config.instances))

API(cuDeviceGetPCIBusId, NEEDS_INIT, (char *out, int room, CUdevice device), (out, room, device)) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    snprintf(out, (size_t)room, "0000:%02x:00.0", device + 1);
    return CUDA_SUCCESS;
}

API(cuDeviceTotalMem_v2, NEEDS_INIT, (size_t * out, CUdevice device), (out, device)) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    *out = device_get(device)->capacity;
    return CUDA_SUCCESS;
}

API(cuDeviceComputeCapability, NEEDS_INIT, (int *major, int *minor, CUdevice device), (major, minor, device)) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    *major = 9;
    *minor = 0;
    return CUDA_SUCCESS;
}

/* Numbers of cuda.h's CUdevice_attribute; others are 0. */
static int attribute(int which, const struct device *device) {
    switch (which) {
    case 1:
        return 1024; /* threads per block */
    case 10:
        return 32; /* warp */
    case 16:
        return 132; /* multiprocessors */
    case 19:
    case 31:
    case 40:
    case 41:
        return 1; /* maps host memory, concurrent kernels, async engines, unified addressing */
    case 33:
        return device->id + 1; /* PCI bus */
    case 75:
        return 9; /* compute capability */
    case 83:
    case 89:
        return 1; /* managed memory, also concurrently */
    case 88:
        return sim_config.pageable; /* whether it reads host memory that was not registered */
    case 102:
        return 1; /* virtual memory management */
    case 103:
        return 1; /* handles as file descriptors */
    case 110:
        return 1; /* direct access of RDMA with VMM */
    case 115:
        return 1; /* memory pools */
    case 119:
        return 1; /* handle types of pools */
    case 133:
        return sim_config.served; /* through MPS */
    case 132:
        return sim_config.multicast;
    default:
        return 0;
    }
}

API(cuDeviceGetAttribute, NEEDS_INIT, (int *out, int which, CUdevice device), (out, which, device)) {
    if (!device_get(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = attribute(which, device_get(device));
    return CUDA_SUCCESS;
}

API(cuDeviceCanAccessPeer, NEEDS_INIT, (int *out, CUdevice device, CUdevice peer), (out, device, peer)) {
    if (!device_get(device) || !device_get(peer)) return CUDA_ERROR_INVALID_DEVICE;
    *out = device_peers(device, peer);
    return CUDA_SUCCESS;
}

API(cuDeviceGetP2PAttribute, NEEDS_INIT, (int *out, int which, CUdevice from, CUdevice to), (out, which, from, to)) {
    if (!device_get(from) || !device_get(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
    *out = which == 2 ? device_peers(from, to) : 0; /* access supported */
    return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) void sim_set_capacity(int device, size_t bytes) {
    pthread_mutex_lock(&sim_lock);
    if (device_get(device)) device_get(device)->capacity = bytes;
    pthread_mutex_unlock(&sim_lock);
}

__attribute__((visibility("default"))) void sim_set_fragmented(int device, size_t bytes) {
    pthread_mutex_lock(&sim_lock);
    if (device_get(device)) device_get(device)->fragmented = bytes;
    pthread_mutex_unlock(&sim_lock);
}

__attribute__((visibility("default"))) void sim_usage(int id, struct sim_usage *out) {
    pthread_mutex_lock(&sim_lock);
    struct device *self = device_get(id);
    memset(out, 0, sizeof *out);
    if (self)
        *out = (struct sim_usage){.capacity = self->capacity,
                                  .used = self->used,
                                  .contexts = self->contexts,
                                  .physical = self->physical,
                                  .handles = self->handles,
                                  .reserved_va = space_reserved_bytes(),
                                  .blocks = space_count(),
                                  .pending = engine_pending(),
                                  .faults = space_faults()};
    host_bytes(&out->pinned, &out->registered);
    pthread_mutex_unlock(&sim_lock);
}
