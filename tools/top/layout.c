/* layout.c — see layout.h. */
#include "tools/top/layout.h"

#include <stdio.h>
#include <string.h>

enum { SIZE = 11, RATE = 13, BLOCKS = 13, GAP = 2, NARROW = 90 };

/* On a narrow screen the mean and the blocks are left out, so that the name has room. */
static bool is_narrow(int width) { return width < NARROW; }

static int figures_width(bool devices, int width) {
    return SIZE + (devices ? SIZE : 0) + RATE + (is_narrow(width) ? 0 : RATE + BLOCKS) + GAP;
}

int layout_name_width(bool devices, int width) { return width - figures_width(devices, width); }

/* The rate is limited to 64 bits, because figures of a damaged ledger may be of any size. */
int64_t layout_per_second(int64_t bytes, double seconds) {
    double rate = seconds > 0 ? (double)bytes / seconds : 0;
    return rate >= 0x1p63 ? INT64_MAX : rate <= -0x1p63 ? INT64_MIN : (int64_t)rate;
}

struct text layout_rate(int64_t bytes) {
    struct text text = {""}, size = text_size_change(bytes);
    if (bytes) snprintf(text.s, sizeof text.s, "%.24s/s", size.s);
    return text;
}

static struct text size_of(int64_t bytes) {
    struct text text, size = text_size(bytes < 0 ? -(uint64_t)bytes : (uint64_t)bytes);
    snprintf(text.s, sizeof text.s, "%s%.30s", bytes < 0 ? "-" : "", size.s);
    return text;
}

struct text_line layout_row(const struct layout_row *row, bool devices, int width) {
    struct text_line line;
    char device[32] = "", more[64] = "";
    struct text blocks = text_count(row->blocks < 0 ? -(uint64_t)row->blocks : (uint64_t)row->blocks);
    if (devices) snprintf(device, sizeof device, "%*s", SIZE, row->device ? size_of(row->device).s : "");
    if (!is_narrow(width))
        snprintf(more, sizeof more, "%*s%*s%s", RATE, layout_rate(row->mean).s,
                 BLOCKS - (int)strlen(blocks.s) > 0 ? BLOCKS - (int)strlen(blocks.s) : 0, row->blocks < 0 ? "-" : "",
                 blocks.s);
    snprintf(line.s, sizeof line.s, "%*s%s%*s%s%*s%.800s", SIZE, size_of(row->live).s, device, RATE,
             layout_rate(row->now).s, more, GAP, "", text_fit(row->name, layout_name_width(devices, width)).s);
    return text_columns(line.s) > width ? text_fit(line.s, width) : line; /* figures of an unlikely size */
}

static const char *layout_title(enum rows_sort sort, enum rows_sort of, const char *plain, const char *marked) {
    return sort == of ? marked : plain;
}

struct text_line layout_titles(enum rows_sort sort, bool devices, const char *name, int width) {
    struct text_line line;
    char device[32] = "", more[64] = "";
    if (devices) snprintf(device, sizeof device, "%*s", SIZE, "devices");
    if (!is_narrow(width))
        snprintf(more, sizeof more, "%*s%*s", RATE, layout_title(sort, ROWS_BY_GROWTH, "since start", "*since start"),
                 BLOCKS, layout_title(sort, ROWS_BY_BLOCKS, "blocks", "*blocks"));
    snprintf(line.s, sizeof line.s, "%*s%s%*s%s%*s%.200s", SIZE, layout_title(sort, ROWS_BY_SIZE, "live", "*live"),
             device, RATE, layout_title(sort, ROWS_BY_NOW, "now", "*now"), more, GAP, "", name);
    return line;
}

struct text_line layout_ends(const char *left, const char *right, int width) {
    struct text_line line, begin = text_fit(left, width), end = {""};
    int have = text_columns(begin.s), rest = width - have - 1;
    if (rest > 0 && text_columns(right) <= rest) end = text_fit(right, rest);
    int gap = *end.s ? width - have - text_columns(end.s) : 0;
    snprintf(line.s, sizeof line.s, "%.500s%*s%.400s", begin.s, gap, "", end.s);
    return line;
}

const char *layout_view_name(enum view view) {
    static const char *const names[VIEWS] = {[BY_MODEL] = "model", [BY_NODE] = "node",     [BY_RUN] = "run",
                                             [BY_SITE] = "site",   [BY_MODULE] = "module", [BY_THREAD] = "thread"};
    return names[view];
}

const char *layout_sort_name(enum rows_sort sort) {
    static const char *const names[ROWS_SORTS] = {[ROWS_BY_SIZE] = "live bytes",
                                                  [ROWS_BY_NOW] = "gain since the last look",
                                                  [ROWS_BY_GROWTH] = "gain since the start of top",
                                                  [ROWS_BY_BLOCKS] = "live blocks"};
    return names[sort];
}

const char *layout_keys(const struct face *face) {
    if (face->level == LEVEL_PROCESSES) return "Enter watch  / search  Space freeze  ? help  q quit";
    if (face->level == LEVEL_STACK) return "Esc back  Space freeze  ? help  q quit";
    return "m n u c l t view  s sort  / search  Enter into  Space freeze  w snapshot  S R T  ? help  q quit";
}
