/* report_table.c — the tables of a report in text, by owner, module, thread and others; see report.h. */
#include "tools/views/estimate.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <string.h>

static void thread_rows(const struct groups *groups, size_t shown) {
    int width = text_width() - 42;
    printf("  %-*s %12s %12s\n", width, "", "allocated", "net");
    for (size_t i = 0; i < shown; i++) {
        const struct row *row = groups_row(groups, i);
        printf("  %s %12s %12s\n", text_left(groups_member(groups, row), width).s, text_size(row->alloc_bytes).s,
               text_size_change((int64_t)row->side[0].live_bytes).s);
    }
}

enum { ERROR_WIDTH = 14 };

static void print_error(double variance) { printf("%*s", ERROR_WIDTH, text_size(estimate_error(variance)).s); }

static void live_rows(const struct report *report, const struct groups *groups, size_t shown) {
    bool churn = report->measure == MEASURE_ALLOCATED, third = churn || report->image->has_picture;
    bool of_live = groups->estimated && report->measure == MEASURE_LIVE, of_third = groups->estimated && !of_live;
    struct text title = churn ? (struct text){"allocated"} : report_peak_label(report->image);
    int width = text_width() - (third ? 42 : 30) - (groups->estimated ? ERROR_WIDTH : 0);
    printf("  %-*s %12s%s %11s", width, "", "live", of_live ? "     ± of live" : "", "blocks");
    if (third) printf(" %12s", title.s);
    if (of_third) printf("%*s± %s", ERROR_WIDTH - 2 - (int)strlen(title.s), "", title.s);
    putchar('\n');
    for (size_t i = 0; i < shown; i++) {
        const struct row *row = groups_row(groups, i);
        char label[2048];
        groups_words(groups, row, label, sizeof label);
        printf("  %s %12s", text_left(label, width).s, text_size(row->side[0].live_bytes).s);
        if (of_live) print_error(row->variance);
        printf(" %11s", text_count(row->side[0].live_blocks).s);
        if (third) printf(" %12s", text_size(churn ? row->alloc_bytes : row->peak_bytes).s);
        if (of_third) print_error(row->variance);
        putchar('\n');
    }
}

/* Drops rows that have no live memory and had none at the peak. If all rows are empty, it drops none. Returns the
 * number of dropped rows. No rows can be added to the groups afterwards. */
static size_t drop_empty(struct groups *groups) {
    size_t kept = 0, dropped = groups->count;
    for (size_t i = 0; i < groups->count; i++)
        if (groups->rows[i].side[0].live_bytes || groups->rows[i].peak_bytes) groups->rows[kept++] = groups->rows[i];
    if (kept) groups->count = kept;
    return kept ? dropped - kept : 0;
}

int report_text_table(const struct report *report, enum view view) {
    struct groups groups;
    groups_begin(&groups, view, 1);
    groups.tids = true;
    groups.matched = report->matched;
    groups.measure = report->measure;
    int result = groups_add(&groups, report->image, 0);
    bool all = view == BY_THREAD || report->measure == MEASURE_ALLOCATED;
    size_t empty = result < 0 || all ? 0 : drop_empty(&groups);
    if (result < 0 || groups_sort_by(&groups, report->measure, report->top) < 0) {
        groups_end(&groups);
        return -1;
    }
    size_t shown = groups.count < report->top ? groups.count : report->top;
    report_text_view(report, view);
    if (!groups.count)
        puts(report_text_nothing(view == BY_THREAD ? MEASURE_ALLOCATED : report->measure));
    else if (view == BY_THREAD)
        thread_rows(&groups, shown);
    else
        live_rows(report, &groups, shown);
    if (shown < groups.count) printf("  … and %zu more (--top=N shows N)", groups.count - shown);
    if (empty)
        printf("%s and %zu that %s nothing", shown < groups.count ? "," : "  …", empty, empty == 1 ? "holds" : "hold");
    if (shown < groups.count || empty) putchar('\n');
    if (view == BY_THREAD) report_text_thread_notes(&groups, shown);
    groups_end(&groups);
    return 0;
}

int report_text_owners(const struct report *report) {
    return image_has_tags(report->image) ? report_text_table(report, BY_MODEL) : 0;
}
