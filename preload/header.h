/* header.h — the 16 bytes in front of each block.
 * In: a block's size, site and where it really starts. Out: the same, from the pointer that the program has, and
 * whether it is ours at all.
 *
 * mark is the low half of the word in front of the block, where glibc keeps a chunk's size and flags. Bit 3 of that
 * word is always clear in glibc (sizes are multiples of 16) and set in ours. Over an allocator other than glibc
 * the word may hold anything: there the upper 16 bits of `size` also carry a key mixed with the address. */
#ifndef MEMSTOW_HEADER_H
#define MEMSTOW_HEADER_H

#include <stdbool.h>
#include <stdint.h>

struct header {
    uint64_t size; /* as the program asked; below 2^47 */
    union {
        struct {
            uint32_t mark, site;
        };
        uint64_t word;
    };
};
_Static_assert(sizeof(struct header) == 16, "malloc's alignment is kept");

/* mark: magic (6 bits), two bits for special blocks, generation of the process (8), distance to the raw block in
 * 16-byte units (12), bit 3, and three more bits for special blocks. */
enum {
    HEADER_MAGIC = (int)0xA4000008,
    HEADER_MAGIC_MASK = (int)0xFC000008,
    HEADER_PARTS = 1 << 25,  /* parts of it are somebody else's (parts.h): never on the fast path */
    HEADER_MAPPED = 1 << 24, /* it is a mapping of its own (heaps.h): the same */
    HEADER_GENERATION_SHIFT = 16,
    HEADER_DISTANCE_SHIFT = 4,
    HEADER_EARLY = 1 << 0,  /* from glibc, before tracking began; not counted */
    HEADER_LISTED = 1 << 2, /* known by address (blocks.h): never on the fast path */
    HEADER_SIZE_BITS = 48,
    HEADER_DISTANCE_MAX = 0xFFF * 16,
};

static inline uint32_t header_mark(uint32_t generation, uint32_t distance) {
    return (uint32_t)HEADER_MAGIC | (generation & 0xFF) << HEADER_GENERATION_SHIFT |
           distance / 16 << HEADER_DISTANCE_SHIFT;
}

static inline uint32_t header_distance(uint32_t mark) { return (mark >> HEADER_DISTANCE_SHIFT & 0xFFF) * 16; }

static inline uint32_t header_generation(uint32_t mark) { return mark >> HEADER_GENERATION_SHIFT & 0xFF; }

static inline bool header_magic(uint32_t mark) {
    return (mark & (uint32_t)HEADER_MAGIC_MASK) == (uint32_t)HEADER_MAGIC && header_distance(mark) != 0;
}

/* 16 bits that depend on the address and a secret of the process. */
static inline uint64_t header_key(uintptr_t block, uint64_t secret) {
    return ((block ^ secret) * 0x9E3779B97F4A7C15u) >> HEADER_SIZE_BITS << HEADER_SIZE_BITS;
}

#endif
