/* estimate.h — what the samples of a ledger whose call stacks are sampled stand for.
 * In: an image as it was read: at each call stack the sums of its samples, and for each tag one total of all other
 * blocks. Out: the same with estimates in place of those sums, how far off each may be, and remainders, so that what an
 * owner has is exact. What is known of the process as
 * a whole, and of mappings, stays as it is: exact. docs/stacks.md has the reasons. */
#ifndef MEMSTOW_ESTIMATE_H
#define MEMSTOW_ESTIMATE_H

#include "tools/image/image.h"

/* Once, and after whatever goes by the blocks that were counted. Does nothing to an image that is not sampled; 0, or
 * -1: no memory. */
int estimate_stacks(struct image *image);

/* The error of a figure that is a sum of estimates, from the sum of their variances: its standard deviation. */
uint64_t estimate_error(double variance);

/* What all call stacks add up to, and what is to be added to that for the exact sum of the measure. */
struct estimate {
    uint64_t bytes, blocks, error; /* error: of bytes */
    int64_t remainder, remainder_blocks;
};
struct estimate estimate_sum(const struct image *image, enum measure measure);

/* That in words: a sentence or two, for people. */
void estimate_words(const struct image *image, enum measure measure, char *text, size_t size);

#endif
