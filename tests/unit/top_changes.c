/* top_changes.c — sums of counters tell every change, also where a plain sum of the words would not. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/top/changes.h"

Test(top_changes, a_plain_sum_would_miss_this) {
    uint64_t before[SNAP_CHUNK_SITES] = {0}, after[SNAP_CHUNK_SITES] = {0};
    uint64_t plain = 0;
    for (size_t i = 0; i < SNAP_CHUNK_SITES; i++) before[i] = snap_narrow(64, 1, 0);
    memcpy(after, before, sizeof after);
    /* 65,536 allocations and 65,535 frees, at three sites: their sum is 2^64 */
    after[0] = snap_narrow(64, 1 + 32767, 32767);
    after[1] = snap_narrow(64, 1 + 32767, 32767);
    after[2] = snap_narrow(64, 1 + 2, 1);
    for (size_t i = 0; i < SNAP_CHUNK_SITES; i++) plain += after[i] - before[i];
    cr_expect_eq(plain, 0);
    cr_expect_not(changes_same(changes_of_chunk(before), changes_of_chunk(after)));
}

Test(top_changes, a_word_that_becomes_wide_is_a_change) {
    uint64_t before[SNAP_CHUNK_SITES] = {0}, after[SNAP_CHUNK_SITES] = {0};
    before[5] = snap_narrow(UINT32_MAX, 7, 0);
    after[5] = SNAP_WIDE_BIT | (snap_narrow(UINT32_MAX, 7, 0) & (((uint64_t)1 << 48) - 1)); /* the same low bits */
    cr_expect_not(changes_same(changes_of_chunk(before), changes_of_chunk(after)));
    cr_expect(changes_same(changes_of_chunk(after), changes_of_chunk(after)));
}

Test(top_changes, each_field_of_a_wide_counter_counts) {
    struct snap_counter counters[3] = {{1, 2, 3, 4}};
    const uint64_t *words = (const uint64_t *)(const void *)counters;
    uint64_t sum = changes_of_wide(words, 12);
    counters[2].free_blocks++;
    cr_expect_gt(changes_of_wide(words, 12), sum);
}
