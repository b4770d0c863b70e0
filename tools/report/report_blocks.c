/* report_blocks.c — the largest blocks and mappings in text; see report.h. Blocks of one site and size share a row. */
#include "tools/symbols/innermost.h"
#include "tools/report/report.h"

#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 17, AGE = 13, KIND = 9, FIGURES = SIZE + AGE + KIND + 7 };

struct block_row {
    struct listed item; /* the oldest block or mapping of the row */
    size_t count;
};

static uint32_t report_blocks_kind_of(const struct listed *item) { return item->mapping ? item->mapping->kind : 0; }

static int by_site(const void *left, const void *right) {
    const struct listed *a = left, *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (report_blocks_kind_of(a) != report_blocks_kind_of(b))
        return report_blocks_kind_of(a) < report_blocks_kind_of(b) ? -1 : 1;
    if (a->site != b->site) return a->site < b->site ? -1 : 1;
    return a->birth_ns < b->birth_ns ? -1 : a->birth_ns > b->birth_ns;
}

static bool same_row(const struct listed *a, const struct listed *b) {
    return a->size == b->size && report_blocks_kind_of(a) == report_blocks_kind_of(b) && a->site == b->site;
}

static int report_blocks_by_size(const void *left, const void *right) {
    const struct block_row *a = left, *b = right;
    if (a->item.size != b->item.size) return a->item.size > b->item.size ? -1 : 1;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return by_site(&a->item, &b->item);
}

static struct block_row *make_rows(struct listed *list, size_t count, size_t *row_count) {
    struct block_row *rows = calloc(count + 1, sizeof *rows);
    *row_count = 0;
    if (!rows) return NULL;
    qsort(list, count, sizeof *list, by_site);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || !same_row(&list[i], &list[i - 1])) rows[(*row_count)++].item = list[i];
        rows[*row_count - 1].count++;
    }
    qsort(rows, *row_count, sizeof *rows, report_blocks_by_size);
    return rows;
}

/* Where the block was allocated: a line of its call stack, or the module. */
static struct text_line report_blocks_place_of(const struct report *report, uint32_t site, int width) {
    const struct total *total = image_total(report->image, site);
    struct innermost_line line;
    struct text_line text;
    if (total && innermost_caller(&line, report->image, report->symbols, total->stack)) {
        bool python = line.frame->python;
        snprintf(text.s, sizeof text.s, "%s%.1000s", python ? "py " : "",
                 symbol_text(line.frame, line.symbol, width - (python ? 3 : 0)).s);
        return text;
    }
    if (total && total->flags & TOTAL_REMAINDER) return text_fit("(not sampled)", width);
    return text_fit_path(image_module_name(report->image, total ? total->module : 0), width);
}

static void report_blocks_print_row(const struct report *report, const struct block_row *row) {
    const struct listed *item = &row->item;
    char size[80];
    if (row->count > 1)
        snprintf(size, sizeof size, "%s × %s", text_count(row->count).s, text_size(item->size).s);
    else
        snprintf(size, sizeof size, "%s", text_size(item->size).s);
    int pad = SIZE - text_columns(size);
    printf("  %*s%s %*s  %-*s  %s\n", pad > 0 ? pad : 0, "", size, AGE,
           text_duration(report_age_ns(report->image, item->birth_ns)).s, KIND,
           item->mapping ? report_mapping_kind(item->mapping->kind) : "block",
           report_blocks_place_of(report, item->site, text_width() - FIGURES).s);
}

int report_text_blocks(const struct report *report) {
    size_t count, row_count, seen = 0;
    struct listed *list = report_listed(report, LISTED_BLOCKS | LISTED_MAPPINGS, &count);
    struct block_row *rows = list ? make_rows(list, count, &row_count) : NULL;
    free(list);
    if (!rows) return -1;
    size_t shown = row_count < report->top ? row_count : report->top;
    for (size_t i = 0; i < shown; i++) seen += rows[i].count;
    if (count) {
        text_heading("Largest blocks of 64 KiB and more, and mappings (%s of %s)", text_count(seen).s,
                     text_count(count).s);
        printf("  %*s %*s  %-*s  %s\n", SIZE, "size", AGE, "age", KIND, "kind", "from");
    }
    for (size_t i = 0; i < shown; i++) report_blocks_print_row(report, &rows[i]);
    free(rows);
    return 0;
}
