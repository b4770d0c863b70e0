/* top_processes.c — the list of processes of `memstow top`: how much each process has gained since it was first
 * seen. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tools/top/processes.h"

static const uint64_t second = 1000000000;

static void take(struct processes *processes, size_t count, const struct tracked *items, uint64_t now) {
    struct tracked_list list = {.items = calloc(count + 1, sizeof *items), .count = count};
    cr_assert(list.items);
    for (size_t i = 0; i < count; i++) list.items[i] = items[i];
    cr_assert_eq(processes_take(processes, list, now), 0);
}

Test(top_processes, growth_since_it_was_seen) {
    static struct tracked two[] = {{.pid = 5, .start_ns = 1, .live = 100}, {.pid = 7, .start_ns = 2, .live = 50}};
    struct processes processes = {0};
    take(&processes, 1, two, 10 * second);
    two[0].live = 130;
    take(&processes, 2, two, 14 * second);
    uint32_t first = rows_find(&processes.rows, 5), late = rows_find(&processes.rows, 7);
    cr_expect_eq(rows_gain(&processes.rows, first), 30);
    cr_expect_eq(rows_growth(&processes.rows, first), 30);
    cr_expect_float_eq(processes_seconds(&processes, first), 4, 1e-6);
    cr_expect_float_eq(processes.seconds, 4, 1e-6);
    cr_expect_eq(rows_gain(&processes.rows, late), 0);
    two[1].live = 70;
    take(&processes, 2, two, 16 * second);
    late = rows_find(&processes.rows, 7);
    cr_expect_eq(rows_growth(&processes.rows, late), 20);
    cr_expect_float_eq(processes_seconds(&processes, late), 2, 1e-6);
    processes_end(&processes);
}

Test(top_processes, a_pid_is_used_again) {
    static struct tracked one = {.pid = 5, .start_ns = 1, .live = 100};
    struct processes processes = {0};
    take(&processes, 1, &one, second);
    one.start_ns = 9;
    one.live = 1000;
    take(&processes, 1, &one, 2 * second);
    uint32_t row = rows_find(&processes.rows, 5);
    cr_expect_eq(rows_gain(&processes.rows, row), 0);
    cr_expect_eq(rows_growth(&processes.rows, row), 0);
    processes_end(&processes);
}

Test(top_processes, one_that_is_gone_has_no_row) {
    static struct tracked two[] = {{.pid = 5, .start_ns = 1, .live = 0}, {.pid = 7, .start_ns = 2, .live = 50}};
    struct processes processes = {0};
    take(&processes, 2, two, second);
    cr_expect(processes.rows.shown[0], "also a process with nothing is in the list");
    take(&processes, 1, two + 1, 2 * second);
    cr_expect_eq(processes.rows.count, 1);
    cr_expect_eq(processes.rows.keys[0], 7);
    take(&processes, 0, two, 3 * second);
    cr_expect_eq(processes.rows.count, 0);
    processes_end(&processes);
}

Test(top_processes, those_without_memory_are_counted) {
    static struct tracked three[] = {{.pid = 5, .start_ns = 1}, {.pid = 7, .start_ns = 2}, {.pid = 9, .live = 50}};
    struct processes processes = {0};
    struct rows *rows = &processes.rows;
    take(&processes, 3, three, second);
    cr_assert_eq(rows->visible, 3);
    cr_assert_eq(rows_sort(rows, ROWS_BY_SIZE, 10), 0);
    cr_assert_eq(rows->ordered, 3);
    cr_expect_eq(rows->keys[rows_ranked(rows, 0)], 9);
    for (uint32_t row = 0; row < 3; row++) rows_keep(rows, row, rows->keys[row] == 7);
    cr_assert_eq(rows->visible, 1);
    cr_assert_eq(rows_sort(rows, ROWS_BY_SIZE, 10), 0);
    cr_assert_eq(rows->ordered, 1);
    cr_expect_eq(rows->keys[rows_ranked(rows, 0)], 7);
    processes_end(&processes);
}
