/* overhead.c — see overhead.h. The ledger has only the bytes and the number of the small blocks of a site, so each
 * block counts with the mean size at its site. Large blocks are known one by one. The overhead of a large block is the
 * unused part of its last page if glibc has made a mapping for the block alone, and otherwise 0. */
#include "tools/views/overhead.h"

#include <stdlib.h>

enum { CHUNK_HEADER = 8, CHUNK_UNIT = 16, CHUNK_MIN = 32, SMALL_CLASSES = 128, PAGE = 4096 };

bool overhead_is_glibc(const struct image *image) {
    return !(image->header.flags & SNAP_FOREIGN_ALLOCATOR) && image->header.allocator == SNAP_ALLOCATOR_KEEP;
}

static uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

static uint64_t glibc_chunk(uint64_t size) {
    uint64_t chunk = round_up(size + CHUNK_HEADER, CHUNK_UNIT);
    return chunk < CHUNK_MIN ? CHUNK_MIN : chunk;
}

/* The size of a block in mimalloc, jemalloc and similar allocators. Small sizes are multiples of 16. Larger sizes come
 * in four equal steps from each power of two to the next. */
static uint64_t size_class(uint64_t size) {
    if (size <= SMALL_CLASSES) return round_up(size, CHUNK_UNIT);
    unsigned power = 63 - (unsigned)__builtin_clzll(size - 1);
    return round_up(size, UINT64_C(1) << (power - 2));
}

struct large_sum {
    uint64_t bytes, blocks;
};

static uint64_t site_overhead(const struct image *image, const struct total *total, const struct large_sum *large) {
    uint64_t bytes = total_live_bytes(total), blocks = total_live_blocks(total);
    if (bytes < large->bytes || blocks <= large->blocks) return 0;
    blocks -= large->blocks;
    uint64_t mean = (bytes - large->bytes + blocks / 2) / blocks;
    if (mean > UINT32_MAX) return 0; /* no small block is that large, but a damaged file may say so */
    uint64_t size = mean + image->header.header_overhead % PAGE;
    return blocks * ((overhead_is_glibc(image) ? glibc_chunk(size) : size_class(size)) - size);
}

/* The overhead of a large block. If only glibc's 16 bytes and memstow's header lie between the beginning of a page and
 * the block, glibc has made a mapping for this block alone. In that case no other block uses the rest of the block's
 * last page, so the rest is overhead. */
static uint64_t large_overhead(const struct image *image, const struct snap_large *large) {
    uint64_t ours = image->header.header_overhead % PAGE;
    bool alone = overhead_is_glibc(image) && large->address % PAGE == CHUNK_UNIT + ours;
    return alone && large->resident > large->size + ours ? large->resident - large->size - ours : 0;
}

int overhead_estimate(const struct image *image, uint64_t *bytes) {
    struct large_sum *large = calloc(image->total_count + 1, sizeof *large);
    *bytes = 0;
    if (!large) return -1;
    for (size_t i = 0; i < image->large_count; i++) {
        uint32_t site = image->large[i].site;
        if (site > image->total_count) continue;
        large[site].bytes += image->large[i].size;
        large[site].blocks++;
        *bytes += large_overhead(image, &image->large[i]);
    }
    for (size_t i = 0; i < image->total_count; i++)
        if (image->totals[i].class == SNAP_HOST && !(image->totals[i].flags & TOTAL_INHERITED))
            *bytes += site_overhead(image, &image->totals[i], &large[i + 1]);
    free(large);
    return 0;
}
