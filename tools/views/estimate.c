/* estimate.c — see estimate.h.
 *
 * A block of s bytes is a sample with probability p = 1 - exp(-s/sample_bytes). A sample counts as 1/p blocks of its
 * size. Only the number and the sum of a site's samples are known, so s is the mean size of the site's samples, as in
 * Go's runtime/pprof (scaleHeapSample in protomem.go).
 *
 * Blocks are sampled independently of each other, so the variance of the sum is the sum of the variances of all blocks.
 * Its estimate is the number of samples times s²(1-p)/p². */
#include "tools/views/estimate.h"
#include "tools/base/list.h"
#include "tools/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double MOST = 0x1p62; /* limit on the figures of a damaged file */

static uint64_t estimate_rounded(double value) { return value < MOST ? (uint64_t)(value + 0.5) : (uint64_t)MOST; }

uint64_t estimate_error(double variance) { return estimate_rounded(sqrt(variance)); }

struct stands_for {
    uint64_t bytes, blocks;
    double variance; /* of the bytes */
};

static struct stands_for of_samples(const struct image *image, uint64_t bytes, uint64_t blocks) {
    if (!bytes || !blocks) return (struct stands_for){bytes, blocks, 0};
    double size = (double)bytes / (double)blocks;
    double p = -expm1(-size / (double)image->header.sample_bytes);
    return (struct stands_for){estimate_rounded((double)bytes / p), estimate_rounded((double)blocks / p),
                               size * (double)bytes * (1 - p) / (p * p)};
}

/* Replaces the sums of one site by estimates. Allocated memory is live memory plus freed memory, each with its own mean
 * size. The picture of the peak does not separate blocks from mappings of one site. In the very rare case that a site
 * has both, its figures at the peak stay the sum of the samples. */
static void estimate_scale(struct image *image, size_t index) {
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

/* by_tag[tag] is 1 + the index of the total for those blocks of the tag that are not samples. It is 0 if there is no
 * such total. */
struct rests {
    size_t *by_tag, tags;
};

static size_t tag_of(const struct rests *rests, const struct total *total) {
    return total->tag < rests->tags ? total->tag : 0;
}

static bool add_rest(struct image *image, struct rests *rests, uint32_t tag) {
    if (!LIST_GROW(image->totals, image->total_count, image->total_capacity)) return false;
    image->totals[image->total_count++] = (struct total){.class = SNAP_HOST, .tag = tag, .flags = TOTAL_NOT_SAMPLED};
    rests->by_tag[tag] = image->total_count;
    return true;
}

/* Finds, for each tag, the total of the blocks that are not samples. A tag whose blocks are all samples has no such
 * total, and gets an empty one. */
static bool find_rests(struct image *image, struct rests *rests) {
    size_t count = image->total_count;
    rests->tags = image->tag_count ? image->tag_count : 1;
    rests->by_tag = calloc(rests->tags, sizeof *rests->by_tag);
    if (!rests->by_tag) return false;
    for (size_t i = 0; i < count; i++) {
        const struct total *total = &image->totals[i];
        if (total->flags & TOTAL_NOT_SAMPLED && total->tag < rests->tags) rests->by_tag[total->tag] = i + 1;
    }
    if (!rests->by_tag[0] && !add_rest(image, rests, 0)) return false;
    for (size_t i = 0; i < count; i++) {
        size_t tag = tag_of(rests, &image->totals[i]);
        if (!rests->by_tag[tag] && !add_rest(image, rests, (uint32_t)tag)) return false;
    }
    return true;
}

/* With sign 1, adds the figures of a total to `rest`, a TOTAL_REMAINDER; with sign -1, subtracts them. */
static void estimate_give(struct total *rest, const struct total *total, int sign) {
    uint64_t one = (uint64_t)(int64_t)sign;
    rest->alloc_bytes += one * total->alloc_bytes;
    rest->alloc_blocks += one * total->alloc_blocks;
    rest->free_bytes += one * (total->alloc_bytes - total_live_bytes(total));
    rest->free_blocks += one * (total->alloc_blocks - total_live_blocks(total));
    rest->peak_bytes += one * total->peak_bytes;
    rest->peak_blocks += one * total->peak_blocks;
}

static void begin_rest(struct total *rest) {
    rest->free_bytes = rest->alloc_bytes - total_live_bytes(rest);
    rest->free_blocks = rest->alloc_blocks - total_live_blocks(rest);
    rest->flags = TOTAL_REMAINDER;
}

static void scale_all(struct image *image, const struct rests *rests) {
    for (size_t tag = 0; tag < rests->tags; tag++)
        if (rests->by_tag[tag]) begin_rest(&image->totals[rests->by_tag[tag] - 1]);
    for (size_t i = 0; i < image->total_count; i++) {
        struct total *total = &image->totals[i];
        if (total->class != SNAP_HOST || total->flags & (TOTAL_INHERITED | TOTAL_REMAINDER)) continue;
        struct total *rest = &image->totals[rests->by_tag[tag_of(rests, total)] - 1];
        estimate_give(rest, total, 1);
        estimate_scale(image, i);
        estimate_give(rest, total, -1);
    }
}

int estimate_stacks(struct image *image) {
    struct rests rests = {0};
    if (!image->header.sample_bytes) return 0;
    bool found = find_rests(image, &rests);
    if (found) image->variances = calloc(image->total_count, sizeof *image->variances);
    found = found && image->variances;
    if (found) scale_all(image, &rests);
    free(rests.by_tag);
    return found ? 0 : -1;
}

struct estimate estimate_sum(const struct image *image, enum measure measure) {
    struct estimate sum = {0};
    double variance = 0;
    for (size_t i = 0; i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (total->flags & TOTAL_INHERITED) continue;
        variance += image_variance(image, total, measure);
        if (total->flags & TOTAL_REMAINDER) {
            sum.remainder += (int64_t)total_measure(total, measure);
            sum.remainder_blocks += (int64_t)total_measure_blocks(total, measure);
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
             "Call stacks are estimates from samples, one in %s allocated; ± is the standard error. Their sum is %s "
             "%s, ± %s. The exact sum is %s %s.",
             text_size(image->header.sample_bytes).s, text_size(sum.bytes).s, held[measure], text_size(sum.error).s,
             text_size(off).s, sum.remainder < 0 ? "lower" : "higher");
}
