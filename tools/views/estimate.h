/* estimate.h — estimates all blocks of a ledger from its samples; docs/stacks.md has the reasons.
 * In: an image with sampled call stacks, as it was read. Each call stack has the sums of its samples; each tag has one
 * total of its blocks that are not samples.
 * Out: the same image, with estimates in place of these sums, and their variances. A remainder for each tag (the exact
 * figure minus the estimates) keeps the figures of owners exact. Figures of the whole process and of mappings are
 * exact, and do not change. */
#ifndef MEMSTOW_ESTIMATE_H
#define MEMSTOW_ESTIMATE_H

#include "tools/image/image.h"

/* Call it once, after all steps that need the figures as they were counted. An image whose stacks were not
 * sampled stays as it is. Returns 0, or -1: no memory. */
int estimate_stacks(struct image *image);

/* The standard error of a sum of estimates. `variance`: the sum of their variances. */
uint64_t estimate_error(double variance);

/* The sum of all call stacks in a measure. remainder: the exact sum minus this sum. */
struct estimate {
    uint64_t bytes, blocks, error; /* error: of the bytes */
    int64_t remainder, remainder_blocks;
};
struct estimate estimate_sum(const struct image *image, enum measure measure);

/* Says in three sentences that call stacks are estimates, and gives their sum, its error and its difference from the
 * exact sum. */
void estimate_words(const struct image *image, enum measure measure, char *text, size_t size);

#endif
