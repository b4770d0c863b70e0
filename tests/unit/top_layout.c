/* top_layout.c — the lines of `memstow top` fit their width, whatever the figures and names are. The curve is bounded,
 * and keeps its peak. */
#include <criterion/criterion.h>
#include <string.h>

#include "tools/top/curve.h"
#include "tools/top/layout.h"

static const char *const names[] = {"x", "", "a name with \x1b[31m control and \xff invalid bytes",
                                    "/a/very/long/path/that/goes/on/and/on/and/on/and/on/and/on/and/on/libx.so.1.2.3"};

Test(top_layout, lines_fit_and_have_no_control_characters) {
    static const int64_t figures[] = {0, -1, 1023, -5000, INT64_C(1) << 40, INT64_MAX, INT64_MIN};
    for (int width = LAYOUT_COLUMNS_LEAST; width < 200; width += 7)
        for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
            for (size_t n = 0; n < sizeof names / sizeof *names; n++)
                for (int devices = 0; devices < 2; devices++) {
                    struct layout_row row = {figures[f], figures[f],           figures[f],
                                             figures[f], figures[f] / 1000000, names[n]};
                    struct text_line line = layout_row(&row, devices, width);
                    cr_assert_leq(text_columns(line.s), width, "%s", line.s);
                    cr_assert_null(strpbrk(line.s, "\x1b\n\t\xff"), "%s", line.s);
                }
}

Test(top_layout, columns_stand_under_their_titles) {
    struct layout_row row = {3 << 20, 0, 2048, -1024, 12345, "NAME"};
    for (int width = 60; width <= 120; width += 60) {
        struct text_line titles = layout_titles(ROWS_BY_NOW, false, "name", width),
                         line = layout_row(&row, false, width);
        cr_expect_eq(strstr(titles.s, "name") - titles.s, strstr(line.s, "NAME") - line.s);
        cr_expect_eq(strstr(titles.s, "live") + 4 - titles.s, strstr(line.s, "3.0 MiB") + 7 - line.s);
        cr_expect_eq(strstr(titles.s, "*now") + 4 - titles.s, strstr(line.s, "+2.0 KiB/s") + 10 - line.s);
        cr_expect_eq(!!strstr(line.s, "12,345"), width == 120, "a narrow screen has no blocks");
        cr_expect_eq(!!strstr(line.s, "-1.0 KiB/s"), width == 120);
    }
}

Test(top_layout, rates) {
    cr_expect_eq(layout_per_second(3000, 1.5), 2000);
    cr_expect_eq(layout_per_second(3000, 0), 0, "there was no look before");
    cr_expect_str_eq(layout_rate(0).s, "");
    cr_expect_str_eq(layout_rate(-1536).s, "-1.5 KiB/s");
}

Test(top_layout, both_ends_of_a_line) {
    struct text_line line = layout_ends("left", "right", 20);
    cr_expect_str_eq(line.s, "left           right");
    cr_expect_str_eq(layout_ends("a text that fills it", "right", 20).s, "a text that fills it");
}

Test(top_layout, a_curve_shows_the_latest_on_the_right) {
    struct curve curve = {.count = 0};
    curve_add(&curve, 0);
    curve_add(&curve, 50);
    curve_add(&curve, 100);
    cr_expect_str_eq(curve_line(&curve, 0, 1, 5).s, "   ▄█");
    cr_expect_str_eq(curve_line(&curve, 0, 2, 3).s, "  █");
    cr_expect_str_eq(curve_line(&curve, 1, 2, 3).s, " ██");
    cr_expect_eq(curve_looks(&curve, 2), 2);
    cr_expect_eq(curve_looks(&curve, 80), 3);
}

/* A peak is seen however long ago it was, and the curve never has more than CURVE_POINTS points. */
Test(top_layout, a_long_curve_is_bounded_and_keeps_its_peak) {
    static struct curve curve;
    for (uint64_t i = 0; i < 100000; i++) {
        curve_add(&curve, i == 777 ? 1000 : 10);
        cr_assert_leq(curve.count, (size_t)CURVE_POINTS);
    }
    uint64_t most = 0;
    for (size_t i = 0; i < curve.count; i++) most = curve.points[i] > most ? curve.points[i] : most;
    cr_expect_eq(most, 1000);
    cr_expect_eq(curve_looks(&curve, CURVE_POINTS), 100000);
}

Test(top_layout, a_rate_of_impossible_figures) {
    cr_expect_eq(layout_per_second(100, 2), 50);
    cr_expect_eq(layout_per_second(100, 0), 0);
    cr_expect_eq(layout_per_second(INT64_MAX, 0.1), INT64_MAX);
    cr_expect_eq(layout_per_second(INT64_MIN, 0.1), INT64_MIN);
}
