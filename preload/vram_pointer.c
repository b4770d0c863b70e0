/* vram_pointer.c — see vram_pointer.h. Of memory that is there the driver knows all but where it begins and ends: it
 * says so of one piece. */
#include "vram_pointer.h"

#include "stow_cuda.h"

enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, IS_MANAGED = 8, DEVICE_ORDINAL = 9, RANGE_START = 11, RANGE_SIZE = 12 };
enum { IS_DEVICE_MEMORY = 2 };

bool vram_pointer_range(uint64_t address, uint64_t *start, uint64_t *bytes) {
    struct stow_cuda_found block;
    if (!stow_cuda_around(address, &block)) return false;
    *start = block.at;
    *bytes = block.asked;
    return true;
}

/* As far as whoever asks what kind of pointer it has needs it: the rest says that it is not known. */
static bool of_what_is_out(void *out, int which, uint64_t address, const struct stow_cuda_found *block) {
    switch (which) {
    case MEMORY_TYPE:
        *(unsigned *)out = IS_DEVICE_MEMORY;
        return true;
    case DEVICE_POINTER:
        *(uint64_t *)out = address;
        return true;
    case IS_MANAGED:
        *(unsigned *)out = 0;
        return true;
    case DEVICE_ORDINAL:
        *(int *)out = (int)block->device;
        return true;
    default:
        return false;
    }
}

bool vram_pointer_attribute(void *out, int which, uint64_t address) {
    struct stow_cuda_found block;
    if (!out || !stow_cuda_around(address, &block)) return false;
    switch (which) {
    case RANGE_START:
        *(uint64_t *)out = block.at;
        return true;
    case RANGE_SIZE:
        *(uint64_t *)out = block.asked;
        return true;
    default:
        return block.state == VRAM_STOWED && of_what_is_out(out, which, address, &block);
    }
}
