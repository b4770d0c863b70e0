/* top.c — the first few of many are the same as after sorting all. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#include "tools/base/top.h"

static int by_value(const void *left, const void *right, void *context) {
    const uint32_t *a = left, *b = right;
    (void)context;
    return *a < *b ? -1 : *a > *b;
}

Test(top, as_if_all_were_sorted) {
    static const size_t counts[] = {0, 1, 2, 9, 100, 1000}, mosts[] = {0, 1, 2, 7, 10, 124, 5000};
    uint32_t values[1000], sorted[1000];
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t m = 0; m < sizeof mosts / sizeof *mosts; m++) {
            size_t count = counts[c], most = mosts[m] < count ? mosts[m] : count;
            for (size_t i = 0; i < count; i++) values[i] = sorted[i] = (uint32_t)(i * 7919 % 500);
            qsort_r(sorted, count, sizeof *sorted, by_value, NULL);
            top_sort(values, count, sizeof *values, mosts[m], by_value, NULL);
            for (size_t i = 0; i < most; i++) cr_expect_eq(values[i], sorted[i], "%zu of %zu", i, count);
        }
}
