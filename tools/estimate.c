/* estimate.c — see estimate.h.
 *
 * A block of s bytes is a sample with probability p = 1 - exp(-s/sample_bytes), and then stands for 1/p blocks like it.
 * Of a site's samples only the number and the sum are known: all of them count as of their mean size, as Go's
 * runtime/pprof does it (scaleHeapSample in protomem.go). Whether one block is a sample says nothing about another, so
 * the variance of the sum is that of one block, s²(1-p)/p² by the samples, as often as there are samples. */
#include "estimate.h"
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MOST = 0x1p62; /* of what a damaged file may ask for */

static uint64_t rounded(double value) { return value < MOST ? (uint64_t)(value + 0.5) : (uint64_t)MOST; }

uint64_t estimate_error(double variance) { return rounded(sqrt(variance)); }

struct stands_for {
    uint64_t bytes, blocks;
    double variance; /* of bytes */
};

static struct stands_for of_samples(const struct image *image, uint64_t bytes, uint64_t blocks) {
    if (!bytes || !blocks) return (struct stands_for){bytes, blocks, 0};
    double size = (double)bytes / (double)blocks;
    double p = -expm1(-size / (double)image->header.sample_bytes);
    return (struct stands_for){rounded((double)bytes / p), rounded((double)blocks / p),
                               size * (double)bytes * (1 - p) / (p * p)};
}

/* What was allocated is what lives and what was freed, each by its own mean size. A picture of the peak does not part
 * blocks from mappings of the same site: then, which is next to never, it stays the sum of the samples. */
static void scale(struct image *image, size_t index) {
    struct total *total = &image->totals[index];
    bool mixed = index + 1 < image->total_count && total_same_site(total, total + 1);
    struct stands_for live = of_samples(image, total_live_bytes(total), total_live_blocks(total));
    struct stands_for freed = of_samples(image, total->free_bytes, total->free_blocks);
    struct stands_for peak = of_samples(image, total->peak_bytes, mixed ? 0 : total->peak_blocks);
    double *variances = image->variances[index];
    variances[MEASURE_LIVE] = live.variance;
    variances[MEASURE_PEAK] = peak.variance;
    variances[MEASURE_ALLOCATED] = live.variance + freed.variance;
    total->free_bytes = freed.bytes;
    total->free_blocks = freed.blocks;
    total->alloc_bytes = live.bytes + freed.bytes;
    total->alloc_blocks = live.blocks + freed.blocks;
    total->peak_bytes = peak.bytes;
    if (!mixed) total->peak_blocks = peak.blocks;
}

/* Of blocks that are no samples there may be none, and then no total. */
static struct total *not_sampled(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++)
        if (image->totals[i].flags & TOTAL_NOT_SAMPLED) return &image->totals[i];
    struct total *grown = realloc(image->totals, (image->total_count + 1) * sizeof *grown);
    if (!grown) return NULL;
    image->totals = grown;
    image->total_capacity = image->total_count + 1;
    grown[image->total_count] = (struct total){.class = SNAP_HOST, .flags = TOTAL_NOT_SAMPLED};
    return &grown[image->total_count++];
}

/* Adds what the total held to the remainder, or takes it away. */
static void give(struct total *rest, const struct total *total, int sign) {
    uint64_t one = (uint64_t)(int64_t)sign;
    rest->alloc_bytes += one * total->alloc_bytes;
    rest->alloc_blocks += one * total->alloc_blocks;
    rest->free_bytes += one * (total->alloc_bytes - total_live_bytes(total));
    rest->free_blocks += one * (total->alloc_blocks - total_live_blocks(total));
    rest->peak_bytes += one * total->peak_bytes;
    rest->peak_blocks += one * total->peak_blocks;
}

int estimate_stacks(struct image *image) {
    if (!image->header.sample_bytes) return 0;
    struct total *rest = not_sampled(image);
    image->variances = calloc(image->total_count, sizeof *image->variances);
    if (!rest || !image->variances) return -1;
    rest->free_bytes = rest->alloc_bytes - total_live_bytes(rest);
    rest->free_blocks = rest->alloc_blocks - total_live_blocks(rest);
    rest->flags = TOTAL_REMAINDER;
    for (size_t i = 0; i < image->total_count; i++) {
        struct total *total = &image->totals[i];
        if (total == rest || total->class != SNAP_HOST || total->flags & TOTAL_INHERITED) continue;
        give(rest, total, 1);
        scale(image, i);
        give(rest, total, -1);
    }
    return 0;
}

struct estimate estimate_sum(const struct image *image, enum measure measure) {
    struct estimate sum = {0};
    double variance = 0;
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (total->flags & TOTAL_INHERITED) continue;
        variance += image_variance(image, total, measure);
        if (total->flags & TOTAL_REMAINDER) {
            sum.remainder = (int64_t)total_measure(total, measure);
            sum.remainder_blocks = (int64_t)total_measure_blocks(total, measure);
        } else {
            sum.bytes += total_measure(total, measure);
            sum.blocks += total_measure_blocks(total, measure);
        }
    }
    sum.error = estimate_error(variance);
    return sum;
}

void estimate_words(const struct image *image, enum measure measure, char *text, size_t size) {
    static const char *const held[] = {"live", "at peak", "allocated"};
    struct estimate sum = estimate_sum(image, measure);
    uint64_t off = sum.remainder < 0 ? -(uint64_t)sum.remainder : (uint64_t)sum.remainder;
    snprintf(text, size,
             "Call stacks are estimates from samples, one in %s allocated; ± is the standard error. They add up to %s "
             "%s, ± %s: %s %s than is known exactly.",
             text_size(image->header.sample_bytes).s, text_size(sum.bytes).s, held[measure], text_size(sum.error).s,
             text_size(off).s, sum.remainder < 0 ? "more" : "less");
}
