/* cuda_arrays.c — how many bytes an array needs, from its description; see cuda_events.h. The driver adds bytes for its
 * layout. It does not tell how many, so they are not counted. */
#include "preload/events/cuda_events.h"

/* Compressed formats (BC1 to BC7): a block of 4 x 4 elements has 8 or 16 bytes. The first line has the driver's numbers
 * of the formats, the second line the runtime's. */
enum { DRIVER_BC1 = 0x91, DRIVER_BC2 = 0x93, DRIVER_BC4 = 0x97, DRIVER_BC5 = 0x99, DRIVER_BC7 = 0x9E };
enum { RUNTIME_BC1 = 17, RUNTIME_BC2 = 19, RUNTIME_BC4 = 23, RUNTIME_BC5 = 25, RUNTIME_BC7 = 30 };

struct shape {
    uint64_t width, height, depth;
    uint64_t element; /* bits of an element */
    uint64_t block;   /* bytes of a block of 4 x 4; 0: not compressed */
};

static uint64_t least_one(uint64_t n) { return n ? n : 1; }

static uint64_t level_bytes(const struct shape *shape, uint32_t level) {
    uint64_t width = least_one(shape->width >> level), height = least_one(shape->height >> level);
    uint64_t depth = least_one(shape->depth >> level);
    if (shape->block) return (width + 3) / 4 * ((height + 3) / 4) * depth * shape->block;
    return width * height * depth * shape->element / 8;
}

static uint64_t bytes_of(const struct shape *shape, uint32_t levels, unsigned flags) {
    uint64_t sum = 0;
    if (flags & (CUDA_ARRAY_SPARSE | CUDA_ARRAY_DEFERRED)) return 0;
    for (uint32_t level = 0; level < levels && level < 32; level++) sum += level_bytes(shape, level);
    return sum;
}

static uint64_t cuda_arrays_compressed(int format, int first, int second, int fourth, int fifth, int last) {
    if (format < first || format > last) return 0;
    return format < second || (format >= fourth && format < fifth) ? 8 : 16;
}

uint64_t cuda_array_bytes(const struct cuda_channels *channels, struct cuda_extent extent, uint32_t levels,
                          unsigned flags) {
    struct shape shape = {.width = extent.width, .height = extent.height, .depth = extent.depth};
    for (int i = 0; i < 4; i++) shape.element += (uint64_t)channels->bits[i];
    shape.block =
        cuda_arrays_compressed(channels->format, RUNTIME_BC1, RUNTIME_BC2, RUNTIME_BC4, RUNTIME_BC5, RUNTIME_BC7);
    return bytes_of(&shape, levels, flags);
}

/* The bits of an element. Most formats describe one channel; a few describe the whole element. */
static uint64_t element_bits(unsigned format, unsigned channels) {
    switch (format) {
    case 0x01: /* 8 bits */
    case 0x08:
        return 8 * channels;
    case 0x02: /* 16 */
    case 0x09:
    case 0x10:
        return 16 * channels;
    case 0x03: /* 32 */
    case 0x0a:
    case 0x20:
        return 32 * channels;
    case 0xb0: /* NV12: two planes */
        return 12;
    }
    /* Normalised formats: six unsigned, then six signed. Of each six, three have 8 bits, then three have 16 bits. The
     * three are for 1, 2 and 4 channels. */
    if (format >= 0xc0 && format <= 0xcb) {
        unsigned at = (format - 0xc0) % 6, width = at < 3 ? 8 : 16;
        return (uint64_t)width << at % 3;
    }
    return 32;
}

uint64_t cuda_array_3d_bytes(const struct cuda_array_3d *is, uint32_t levels) {
    struct shape shape = {.width = is->width, .height = is->height, .depth = is->depth};
    shape.element = element_bits(is->format, is->channels);
    shape.block = cuda_arrays_compressed((int)is->format, DRIVER_BC1, DRIVER_BC2, DRIVER_BC4, DRIVER_BC5, DRIVER_BC7);
    return bytes_of(&shape, levels, is->flags);
}

uint64_t cuda_array_2d_bytes(const struct cuda_array_2d *is) {
    struct cuda_array_3d same = {
        .width = is->width, .height = is->height, .format = is->format, .channels = is->channels};
    return cuda_array_3d_bytes(&same, 1);
}
