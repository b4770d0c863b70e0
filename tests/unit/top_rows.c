/* top_rows.c — rows of `memstow top`: what each row has, and what it has gained. The first rows are in the order
 * that a sort of all rows would give. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/top/rows.h"

static uint32_t put(struct rows *rows, uint64_t key, int64_t live, int64_t blocks) {
    uint32_t row = rows_find(rows, key);
    cr_assert_neq(row, ROWS_NONE);
    rows_add(rows, row, live, blocks);
    return row;
}

static uint64_t key_at(const struct rows *rows, size_t rank) {
    uint32_t row = rows_ranked(rows, rank);
    return row == ROWS_NONE ? UINT64_MAX : rows->keys[row];
}

Test(top_rows, gains_are_those_since_the_last_look) {
    struct rows rows;
    rows_begin(&rows);
    uint32_t row = put(&rows, 7, 100, 2);
    rows_add_began(&rows, row, 100);
    rows_settle(&rows);
    cr_expect_eq(rows_gain(&rows, row), 0);
    rows_look(&rows);
    rows_add(&rows, row, 30, 1);
    rows_add(&rows, row, -50, -1);
    cr_expect_eq(rows_gain(&rows, row), -20);
    rows_look(&rows); /* nothing changes */
    cr_expect_eq(rows_gain(&rows, row), 0);
    cr_expect_eq(rows_growth(&rows, row), -20);
    cr_expect_eq(rows.live[row], 80);
    cr_expect_eq(rows.blocks[row], 2);
    uint32_t later = put(&rows, 8, 5, 1); /* it was not there before */
    cr_expect_eq(rows_gain(&rows, later), 5);
    cr_expect_eq(rows_growth(&rows, later), 5);
    rows_set_device(&rows, later, 1000);
    cr_expect_eq(rows_size(&rows, later), 1005);
    rows_end(&rows);
}

Test(top_rows, each_figure_sorts) {
    struct rows rows;
    rows_begin(&rows);
    put(&rows, 1, 100, 1);
    put(&rows, 2, 50, 9);
    put(&rows, 3, 10, 5);
    for (uint64_t key = 1; key <= 3; key++) {
        uint32_t row = rows_find(&rows, key);
        rows_add_began(&rows, row, rows_size(&rows, row));
    }
    rows_look(&rows);
    put(&rows, 3, 7, 0);
    rows_look(&rows);
    put(&rows, 2, 3, 0);
    static const uint64_t first[ROWS_SORTS] = {
        [ROWS_BY_SIZE] = 1, [ROWS_BY_NOW] = 2, [ROWS_BY_GROWTH] = 3, [ROWS_BY_BLOCKS] = 2};
    for (int sort = 0; sort < ROWS_SORTS; sort++) {
        cr_assert_eq(rows_sort(&rows, (enum rows_sort)sort, 3), 0);
        cr_expect_eq(key_at(&rows, 0), first[sort], "sort %d: %lu", sort, (unsigned long)key_at(&rows, 0));
        cr_expect_eq(rows.visible, 3);
    }
    rows_end(&rows);
}

Test(top_rows, rows_of_nothing_and_rows_left_out_are_not_seen) {
    struct rows rows;
    rows_begin(&rows);
    uint32_t gone = put(&rows, 1, 100, 1);
    put(&rows, 2, 50, 1);
    rows_add(&rows, gone, -100, -1);
    cr_assert_eq(rows_sort(&rows, ROWS_BY_SIZE, 10), 0);
    cr_expect_eq(rows.visible, 1);
    cr_expect_eq(key_at(&rows, 0), 2);
    rows_keep(&rows, rows_find(&rows, 2), false);
    cr_assert_eq(rows_sort(&rows, ROWS_BY_SIZE, 10), 0);
    cr_expect_eq(rows.visible, 0);
    cr_expect_eq(rows_ranked(&rows, 0), ROWS_NONE);
    rows_keep(&rows, rows_find(&rows, 2), true);
    cr_assert_eq(rows_sort(&rows, ROWS_BY_SIZE, 10), 0);
    cr_expect_eq(rows_rank_of(&rows, 2), 0);
    cr_expect_eq(rows_rank_of(&rows, 1), ROWS_NONE);
    rows_end(&rows);
}

/* Over many looks, rows overtake each other. After each look the first ranks are compared with those of a full sort. */
Test(top_rows, the_first_ranks_are_right_after_every_look) {
    enum { ROWS = 20000, LOOKS = 60, MOST = 40 };
    struct rows rows;
    rows_begin(&rows);
    uint64_t random = 1;
    for (uint64_t key = 0; key < ROWS; key++) put(&rows, key, (int64_t)(key * 7919 % 10007), 1);
    for (int look = 0; look < LOOKS; look++) {
        rows_look(&rows);
        for (int i = 0; i < 500; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            int64_t by = (int64_t)(random >> 40 & 0x3FFF) - (look % 3 ? 6000 : 12000);
            put(&rows, random >> 33 & 0x3FFF, by, 0);
        }
        enum rows_sort sort = look % 10 < 7 ? ROWS_BY_SIZE : ROWS_BY_NOW;
        cr_assert_eq(rows_sort(&rows, sort, MOST), 0);
        size_t visible = 0;
        for (uint32_t row = 0; row < rows.count; row++) visible += rows.shown[row] & rows.matched[row];
        cr_assert_eq(rows.visible, visible, "look %d", look);
        for (size_t rank = 0; rank < MOST; rank++) {
            uint32_t row = rows_ranked(&rows, rank);
            int64_t value = sort == ROWS_BY_SIZE ? rows_size(&rows, row) : rows_gain(&rows, row);
            size_t larger = 0, same = 0;
            for (uint32_t other = 0; other < rows.count; other++) {
                int64_t its = sort == ROWS_BY_SIZE ? rows_size(&rows, other) : rows_gain(&rows, other);
                larger += rows.shown[other] && its > value;
                same += rows.shown[other] && its == value;
            }
            cr_assert(larger <= rank && rank < larger + same, "look %d, rank %zu: %zu are larger", look, rank, larger);
        }
    }
    rows_end(&rows);
}
