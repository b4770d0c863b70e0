/* paint.c — see paint.h. */
#include "tools/top/paint.h"
#include "tools/top/layout.h"
#include "tools/top/screen.h"

#include <stdio.h>
#include <string.h>

enum { CURVE_LINES = 2, HEAD_PROCESSES = 2, HEAD_ROWS = 4 + CURVE_LINES, FOOT = 1, STACK_MOST = 1024 };

size_t paint_page(const struct face *face, int lines) {
    int rest = lines - FOOT - (face->level == LEVEL_PROCESSES ? HEAD_PROCESSES : HEAD_ROWS);
    return rest > 0 ? (size_t)rest : 1;
}

/* --- the lowest line: help, messages and questions --- */

static void paint_foot(const struct watch *watch, int line, int width) {
    const struct face *face = &watch->face;
    char typed[300];
    snprintf(typed, sizeof typed, "/%s_", face->typed);
    if (face->asking == ASKING_SEARCH)
        screen_put(line, text_fit(typed, width).s, SCREEN_BOLD);
    else if (face->asking == ASKING_SURE)
        screen_put(line, text_fit(watch->question, width).s, SCREEN_BOLD);
    else
        screen_put(line, text_fit(*watch->message ? watch->message : layout_keys(face), width).s,
                   *watch->message ? SCREEN_BOLD : SCREEN_FAINT);
}

/* --- the lists of processes and of rows --- */

static void paint_row(const struct watch *watch, int line, size_t rank, const struct layout_row *row, bool devices) {
    bool here = rank == watch->face.cursor;
    screen_put(line, layout_row(row, devices, screen_columns()).s,
               here           ? SCREEN_BAR
               : row->now > 0 ? SCREEN_GREW
                              : SCREEN_PLAIN);
}

static struct layout_row figures_of(const struct rows *rows, uint32_t row, double seconds, double since) {
    return (struct layout_row){.live = rows->live[row],
                               .device = rows->device[row],
                               .now = layout_per_second(rows_gain(rows, row), seconds),
                               .mean = layout_per_second(rows_growth(rows, row), since),
                               .blocks = rows->blocks[row]};
}

static void paint_processes(struct watch *watch, int width) {
    struct processes *processes = &watch->processes;
    struct face *face = &watch->face;
    char left[400];
    snprintf(left, sizeof left, "memstow top: %zu tracked process%s%s%.150s%s", processes->list.count,
             processes->list.count == 1 ? "" : "es", *face->search ? ", search \"" : "", face->search,
             *face->search ? "\"" : "");
    screen_put(0, layout_ends(left, face->frozen ? "FROZEN" : "", width).s, SCREEN_BOLD);
    screen_put(1, layout_titles(face->sort, false, "    pid name             file", width).s, SCREEN_BAR);
    for (size_t i = 0; i < face->page; i++) {
        uint32_t row = rows_ranked(&processes->rows, face->first + i);
        if (row == ROWS_NONE || face->first + i >= face->count) break;
        struct layout_row figures =
            figures_of(&processes->rows, row, processes->seconds, processes_seconds(processes, row));
        struct text_line name = processes_name(processes, processes->rows.keys[row], layout_name_width(false, width));
        figures.name = name.s;
        paint_row(watch, (int)i + HEAD_PROCESSES, face->first + i, &figures, false);
    }
    if (!face->count)
        screen_put(HEAD_PROCESSES, *face->search ? "no process matches" : "no process is tracked now", SCREEN_PLAIN);
}

static double since_start(const struct sampling *sampling) {
    return (double)(sampling->look_ns - sampling->begin_ns) / 1e9;
}

static void paint_state_of(const struct watch *watch, char *to, size_t size) {
    const struct sampling *sampling = &watch->sampling;
    if (sampling->state == SAMPLING_ENDED)
        snprintf(to, size, "ENDED: it %s", sampling->ended);
    else if (sampling->state == SAMPLING_REPLACED)
        snprintf(to, size, "ENDED: it became a program that is not tracked");
    else
        snprintf(to, size, "%s",
                 watch->face.frozen     ? "FROZEN"
                 : sampling->exec_waits ? "it becomes another program"
                 : sampling->stale      ? "stacks are being folded"
                                        : "");
}

static void paint_title(struct watch *watch, int width) {
    const struct sampling *sampling = &watch->sampling;
    const struct face *face = &watch->face;
    const struct focus *focus = &watch->grouping.focus;
    char left[1200], right[240], of[400] = "", search[200] = "";
    if (focus->on) snprintf(of, sizeof of, " of %.300s", names_row(&watch->names, focus->view, focus->key, 60).s);
    if (*face->search) snprintf(search, sizeof search, ", search \"%.150s\"", face->search);
    snprintf(left, sizeof left, "%s (pid %d) by %s%s, %s%s", text_fit(sampling->image.header.name, 32).s,
             (int)sampling->pid, layout_view_name(face->view), of, layout_sort_name(face->sort), search);
    paint_state_of(watch, right, sizeof right);
    int rest = width - text_columns(right) - 1;
    screen_put(0, layout_ends(text_fit(left, rest > 20 ? rest : 20).s, right, width).s, SCREEN_BOLD);
}

static void paint_totals(const struct watch *watch, int width) {
    const struct sampling_totals *totals = &watch->sampling.totals;
    char line[600], devices[80] = "";
    if (totals->uses_devices) snprintf(devices, sizeof devices, "  devices %s", text_size(totals->devices).s);
    snprintf(line, sizeof line, "live %s  %s  heap %s  mapped %s  blocks %s  peak %s  RSS %s%s",
             text_size(totals->host + totals->mapped).s,
             watch->gained ? layout_rate(layout_per_second(watch->gained, watch->sampling.seconds)).s : "steady",
             text_size(totals->host).s, text_size(totals->mapped).s, text_count(totals->blocks).s,
             text_peak(totals->peak, totals->allocated).s, text_size(totals->rss).s, devices);
    screen_put(1, text_fit(line, width).s, SCREEN_PLAIN);
}

static void paint_since(const struct watch *watch, int width) {
    const struct sampling *sampling = &watch->sampling;
    const struct sampling_totals *now = &sampling->totals, *began = &sampling->began;
    double since = since_start(sampling);
    char line[400];
    int64_t grown = (int64_t)(now->host + now->mapped - began->host - began->mapped);
    int64_t allocated = layout_per_second((int64_t)(now->allocated - began->allocated), since);
    snprintf(line, sizeof line, "since top began, %s ago: live %s  allocated %s/s  the curve shows %s",
             text_duration(sampling->look_ns - sampling->begin_ns).s, text_size_change(grown).s,
             text_size((uint64_t)(allocated > 0 ? allocated : 0)).s, text_count(curve_looks(&watch->curve, width)).s);
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, " look%s, at most %s", curve_looks(&watch->curve, width) == 1 ? "" : "s",
             text_size(watch->curve.most).s);
    screen_put(2, text_fit(line, width).s, SCREEN_PLAIN);
    for (int i = 0; i < CURVE_LINES; i++)
        screen_put(3 + i, curve_line(&watch->curve, i, CURVE_LINES, width < 300 ? width : 300).s, SCREEN_CURVE);
}

static void paint_rows(struct watch *watch, int width) {
    const struct rows *rows = &watch->grouping.rows;
    struct face *face = &watch->face;
    bool devices = watch->sampling.totals.uses_devices;
    int rest = layout_name_width(devices, width);
    screen_put(HEAD_ROWS - 1, layout_titles(face->sort, devices, layout_view_name(face->view), width).s, SCREEN_BAR);
    for (size_t i = 0; i < face->page; i++) {
        uint32_t row = rows_ranked(rows, face->first + i);
        if (row == ROWS_NONE || face->first + i >= face->count) break;
        struct layout_row figures = figures_of(rows, row, watch->sampling.seconds, since_start(&watch->sampling));
        struct text_line name = names_row(&watch->names, face->view, rows->keys[row], rest);
        figures.name = name.s;
        paint_row(watch, (int)i + HEAD_ROWS, face->first + i, &figures, devices);
    }
    if (!face->count)
        screen_put(HEAD_ROWS, *face->search || face->focused ? "nothing matches" : "nothing is live", SCREEN_PLAIN);
}

static void paint_stack(struct watch *watch, int lines, int width) {
    static struct text_line stack[STACK_MOST];
    const struct rows *rows = &watch->grouping.rows;
    struct text_line owners = names_owners(&watch->names, grouping_tag(watch->stack_key), width);
    size_t count = names_stack(&watch->names, watch->stack_key, stack, STACK_MOST, width);
    size_t page = (size_t)(lines - FOOT - HEAD_ROWS - 1);
    uint32_t row = ROWS_NONE;
    for (uint32_t i = 0; i < rows->count && row == ROWS_NONE; i++)
        if (rows->keys[i] == watch->stack_key) row = i;
    struct layout_row figures = {.name = *owners.s ? owners.s : "the stack, innermost first"};
    if (row != ROWS_NONE) {
        const char *name = figures.name;
        figures = figures_of(rows, row, watch->sampling.seconds, since_start(&watch->sampling));
        figures.name = name;
    }
    bool devices = watch->sampling.totals.uses_devices;
    screen_put(HEAD_ROWS - 1, layout_titles(watch->face.sort, devices, "stack", width).s, SCREEN_BAR);
    screen_put(HEAD_ROWS, layout_row(&figures, devices, width).s, SCREEN_BOLD);
    watch->face.stack_count = count;
    watch->face.stack_page = page;
    size_t first = watch->face.stack_first;
    for (size_t i = 0; i < page && first + i < count; i++)
        screen_put(HEAD_ROWS + 1 + (int)i, stack[first + i].s, SCREEN_PLAIN);
}

static void paint_help(int lines) {
    static const char *const text[] = {
        "Keys",
        "",
        "  up, down, k, j    the cursor; page up and down, Home and End, g and G",
        "  Enter             watch a process; an owner's or module's sites; a site's stack",
        "  Esc               back",
        "  m n u             rows by model, node, run",
        "  c l t             rows by call site, library (module), thread; Tab: the next",
        "  s                 sort by live bytes, gain since the last look, gain since",
        "                    top began, live blocks",
        "  /                 search: names, and in sites each frame of a stack",
        "  Space             freeze, and go on",
        "  w                 write a snapshot into the present folder",
        "  S R               stow or restore the model of the row; asks first",
        "  T                 apply the policies; asks first",
        "  q, Ctrl-C         quit",
        "",
        "now: gained a second since the last look. since start: gained a second since",
        "top began. Any key closes this.",
    };
    for (int i = 0; i < (int)(sizeof text / sizeof *text) && i < lines; i++)
        screen_put(i, text[i], i ? SCREEN_PLAIN : SCREEN_BOLD);
}

void paint(struct watch *watch) {
    int lines = screen_lines(), width = screen_columns();
    screen_clear();
    if (lines < LAYOUT_LINES_LEAST || width < LAYOUT_COLUMNS_LEAST) {
        screen_put(0, "the terminal is too small", SCREEN_PLAIN);
        screen_show();
        return;
    }
    if (watch->face.help) {
        paint_help(lines);
        screen_show();
        return;
    }
    if (watch->face.level == LEVEL_PROCESSES) {
        paint_processes(watch, width);
    } else {
        paint_title(watch, width);
        paint_totals(watch, width);
        paint_since(watch, width);
        if (watch->face.level == LEVEL_STACK)
            paint_stack(watch, lines, width);
        else
            paint_rows(watch, width);
    }
    paint_foot(watch, lines - 1, width);
    screen_show();
}
