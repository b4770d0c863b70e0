/* phys.c — pieces of physical memory. A piece takes capacity of its device when it is made, and gives the capacity back
 * when its last mapping and its last handle are gone. Fresh memory holds random bytes: zeros would hide mistakes. */
#include "sim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* If a device has no more memory than this, a free does not give the memory's host pages back to the system: making new
 * pages would take longer than all other work. The next allocation fills the kept pages again, except in benchmarks. */
#define KEPT (256 * MB)
enum { NOISE_WORDS = 1 << 17 }; /* 1 MiB */

static uint64_t next_random(void) {
    static uint64_t state = 0x9e3779b97f4a7c15;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Each fill begins at another place in the same noise, because making new noise takes ten times as long as a copy. */
void phys_fill(char *at, size_t bytes) {
    static uint64_t noise[NOISE_WORDS];
    if (!sim_config.fill) return;
    if (!noise[0])
        for (size_t i = 0; i < NOISE_WORDS; i++) noise[i] = next_random();
    size_t from = next_random() % NOISE_WORDS * 8;
    while (bytes) {
        size_t length = sizeof noise - from < bytes ? sizeof noise - from : bytes;
        memcpy(at, (char *)noise + from, length);
        at += length;
        bytes -= length;
        from = 0;
    }
}

static bool place_in_device(struct sim_phys *self) {
    if (!extents_take(&self->device->free, self->size, GRANULE, &self->offset)) return false;
    self->host = self->device->alias + self->offset;
    return true;
}

static bool place_in_file(struct sim_phys *self, int fd, uint64_t offset) {
    self->fd = fd;
    self->offset = offset;
    self->host = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)offset);
    return self->host != MAP_FAILED;
}

static bool place_in_own_file(struct sim_phys *self) {
    int fd = memfd_create("simcuda-shareable", MFD_CLOEXEC);
    if (fd < 0) return false;
    if (!ftruncate(fd, (off_t)self->size) && place_in_file(self, fd, 0)) return true;
    close(fd);
    return false;
}

struct sim_phys *phys_new(struct device *device, size_t size, bool own_file) {
    struct sim_phys *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_phys){.device = device, .size = size, .fd = -1, .refs = 1};
    if (!device_take(device, size, false)) {
        free(self);
        return NULL;
    }
    if (!(own_file ? place_in_own_file(self) : place_in_device(self))) {
        device_give(device, size);
        free(self);
        return NULL;
    }
    device->physical += size;
    device->handles++;
    phys_fill(self->host, size);
    return self;
}

/* Makes a piece from a file. The piece takes no capacity of the device now:
 * - For memory of another process or another handle, the capacity has been taken already.
 * - Managed memory takes capacity only while it is resident on the device. */
struct sim_phys *phys_import(struct device *device, int fd, uint64_t offset, size_t size) {
    struct sim_phys *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_phys){.device = device, .size = size, .refs = 1, .shared_in = true};
    if (place_in_file(self, fd, offset)) return self;
    free(self);
    return NULL;
}

static void give_back(struct sim_phys *self) {
    self->device->physical -= self->size;
    self->device->handles--;
    device_give(self->device, self->size);
}

void phys_unref(struct sim_phys *self) {
    if (--self->refs) return;
    if (self->multicast) {
        multicast_drop(self->multicast);
        free(self);
        return;
    }
    if (self->fd >= 0) {
        munmap(self->host, self->size);
        close(self->fd);
    } else {
        bool keeps = sim_config.fill || sim_config.copy_mib_s;
        if (!keeps || self->device->capacity > KEPT)
            fallocate(self->device->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)self->offset,
                      (off_t)self->size);
        extents_give(&self->device->free, self->offset, self->size);
    }
    if (!self->shared_in) give_back(self);
    extents_clear(&self->slab);
    free(self);
}

uint64_t phys_file(const struct sim_phys *self, int *fd) {
    *fd = self->fd >= 0 ? self->fd : self->device->fd;
    return self->offset;
}
