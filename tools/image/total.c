/* total.c — the counters of a site and class in an image; see image.h.
 * In: a total. Out: its bytes and blocks, by measure; sums of totals. Nothing else is read. */
#include "tools/image/image.h"

/* The difference, or 0 if it would be negative: the counters of a killed process may have a free without its
 * allocation. */
static uint64_t total_difference(uint64_t allocated, uint64_t freed) {
    return allocated > freed ? allocated - freed : 0;
}

uint64_t total_live_bytes(const struct total *total) {
    if (total->flags & TOTAL_REMAINDER) return total->alloc_bytes - total->free_bytes;
    return total_difference(total->alloc_bytes, total->free_bytes);
}

uint64_t total_live_blocks(const struct total *total) {
    if (total->flags & TOTAL_REMAINDER) return total->alloc_blocks - total->free_blocks;
    return total_difference(total->alloc_blocks, total->free_blocks);
}

uint64_t total_measure(const struct total *total, enum measure measure) {
    return measure == MEASURE_PEAK        ? total->peak_bytes
           : measure == MEASURE_ALLOCATED ? total->alloc_bytes
                                          : total_live_bytes(total);
}

uint64_t total_measure_blocks(const struct total *total, enum measure measure) {
    return measure == MEASURE_PEAK        ? total->peak_blocks
           : measure == MEASURE_ALLOCATED ? total->alloc_blocks
                                          : total_live_blocks(total);
}

bool total_same_site(const struct total *host, const struct total *mapped) {
    return host->class == SNAP_HOST && mapped->class == SNAP_MAPPED && host->tag == mapped->tag &&
           host->stack == mapped->stack && host->module == mapped->module &&
           (host->flags & ~TOTAL_INEXACT) == (mapped->flags & ~TOTAL_INEXACT);
}

void total_sum_add(struct sum *sum, const struct total *total) {
    sum->alloc_bytes += total->alloc_bytes;
    sum->alloc_blocks += total->alloc_blocks;
    sum->free_bytes += total->free_bytes;
    sum->free_blocks += total->free_blocks;
    sum->live_bytes += total_live_bytes(total);
    sum->live_blocks += total_live_blocks(total);
}
