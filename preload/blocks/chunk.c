/* chunk.c — see chunk.h. */
#include "preload/blocks/chunk.h"

#include "preload/base/next.h"
#include "preload/base/tracked.h"
#include "preload/blocks/blocks.h"
#include "preload/blocks/header.h"
#include "preload/blocks/heaps.h"
#include "preload/shared/snapshot.h"

/* A mark has 12 bits for the distance to the raw block. A block without our header needs no distance, so these bits of
 * its mark hold the check sum of glibc's header.
 * - CHUNK_MAPPED: the bit of glibc's size word that is set if the chunk is a mapping.
 * - UNIT: the bits count the distance in units of UNIT bytes. header_mark takes bytes, so it gets the sum times UNIT.
 * - SUMS: the check sum is a number from 1 to SUMS. */
enum { CHUNK_MAPPED = 2, UNIT = sizeof(struct header), SUMS = 4095 };

/* The check sum of glibc's header. It is a remainder of the division by 4095. The change of one byte changes the
 * dividend by a power of two times a number from 1 to 255. 4095 divides no such product, so the sum always changes. */
static uint32_t chunk_sum(const uint64_t chunk[2]) {
    return (uint32_t)((chunk[0] % SUMS + chunk[1] % SUMS * 2) % SUMS + 1);
}

bool chunk_is_mapped(const void *raw, uint64_t size) {
    bool glibcs = size >= SNAP_LARGE_BYTES && next_is_glibc && !heaps_have(raw);
    return glibcs && ((const uint64_t *)raw)[-1] & CHUNK_MAPPED;
}

uint32_t chunk_mark(const void *p, uint64_t size) {
    uint32_t sum = chunk_is_mapped(p, size) ? chunk_sum((const uint64_t *)p - 2) : 0;
    return header_mark(header_generation(tracked_mark), sum * UNIT) | BLOCK_BARE;
}

bool chunk_changed(uint32_t mark, const uint64_t chunk[2]) {
    uint32_t sum = mark & BLOCK_BARE ? header_distance(mark) : 0;
    return sum && sum != chunk_sum(chunk) * UNIT;
}
