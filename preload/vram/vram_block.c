/* vram_block.c — see vram_block.h. One call of the driver sets a device's access to the whole block, and one call
 * unmaps all pieces. */
#include "preload/vram/vram_block.h"

#include "preload/shared/os.h"

enum { PINNED = 1, DEVICE = 1, NO_ACCESS = 0, READ_WRITE = 3, RDMA_OF_MAPPINGS = 110 }; /* the numbers of cuda.h */

void vram_block_plan(struct vram_block *self, uint64_t bytes) {
    self->asked = bytes;
    self->size = os_round_up(bytes, VRAM_GRANULE);
    self->piece = VRAM_PIECE;
    if (self->size > VRAM_PIECE * VRAM_PIECES)
        self->piece = os_round_up((self->size + VRAM_PIECES - 1) / VRAM_PIECES, VRAM_GRANULE);
    self->pieces = (uint32_t)((self->size + self->piece - 1) / self->piece);
}

int vram_block_reserve(const struct vram_driver *driver, struct vram_block *self) {
    return driver->cuMemAddressReserve(&self->at, self->size, 0, 0, 0);
}

/* Makes the physical memory that the block lacks. If the device allows it, network cards can use this memory, as they
 * can use memory of cudaMalloc. They cannot use memory that is served in place of a pool. */
static int make_pieces(const struct vram_driver *driver, struct vram_block *self) {
    int error = 0, rdma = 0;
    if (!self->in_stream && driver->cuDeviceGetAttribute(&rdma, RDMA_OF_MAPPINGS, (int)self->device)) rdma = 0;
    const struct vram_prop prop = {
        .type = PINNED, .location_type = DEVICE, .location_id = (int)self->device, .rdma = rdma != 0};
    self->rdma = rdma != 0;
    while (self->made < self->pieces && !error) {
        error = driver->cuMemCreate(&self->memory[self->made], vram_block_piece_bytes(self, self->made), &prop, 0);
        self->made += !error;
    }
    return error;
}

static int vram_block_map(const struct vram_driver *driver, struct vram_block *self) {
    int error = 0;
    while (self->mapped < self->pieces && !error) {
        uint32_t i = self->mapped;
        error = driver->cuMemMap(self->at + i * self->piece, vram_block_piece_bytes(self, i), 0, self->memory[i], 0);
        self->mapped += !error;
    }
    return error;
}

/* Sets the access of the devices in `which`, as bits. Those that are also in `may` get access, the others lose it. */
static int set_access(const struct vram_driver *driver, const struct vram_block *self, uint64_t which, uint64_t may) {
    struct vram_access access[VRAM_DEVICES];
    size_t count = 0;
    for (int i = 0; i < VRAM_DEVICES; i++)
        if (which >> i & 1) access[count++] = (struct vram_access){DEVICE, i, may >> i & 1 ? READ_WRITE : NO_ACCESS};
    return count ? driver->cuMemSetAccess(self->at, self->size, access, count) : 0;
}

static int open_to_devices(const struct vram_driver *driver, struct vram_block *self) {
    int error = self->open ? 0 : set_access(driver, self, self->devices, self->devices);
    self->open = !error;
    return error;
}

int vram_block_open(const struct vram_driver *driver, struct vram_block *self, uint64_t devices) {
    int error = self->open ? set_access(driver, self, self->devices ^ devices, devices) : 0;
    if (!error) self->devices = devices;
    return error;
}

int vram_block_make(const struct vram_driver *driver, struct vram_block *self) {
    int error = make_pieces(driver, self);
    if (error) vram_block_strip(driver, self);
    return error;
}

int vram_block_fill(const struct vram_driver *driver, struct vram_block *self) {
    int error = make_pieces(driver, self);
    if (!error) error = vram_block_map(driver, self);
    if (!error) error = open_to_devices(driver, self);
    if (error) vram_block_strip(driver, self);
    return error;
}

static bool vram_block_unmap(const struct vram_driver *driver, struct vram_block *self) {
    if (!self->mapped) return true;
    uint64_t end = (uint64_t)self->mapped * self->piece;
    if (driver->cuMemUnmap(self->at, end < self->size ? end : self->size)) return false;
    self->mapped = 0;
    self->open = false;
    return true;
}

bool vram_block_strip(const struct vram_driver *driver, struct vram_block *self) {
    if (!vram_block_unmap(driver, self)) return false;
    while (self->made && !driver->cuMemRelease(self->memory[self->made - 1])) self->made--;
    return !self->made;
}

bool vram_block_end(const struct vram_driver *driver, struct vram_block *self) {
    if (!vram_block_strip(driver, self)) return false;
    if (self->at && driver->cuMemAddressFree(self->at, self->size)) return false;
    self->at = 0;
    return true;
}
