/* report_curve.c — memory over time as a curve of characters, as wide as the terminal, with its marks; see report.h. */
#include "preload/shared/utf8.h"
#include "tools/report/report.h"
#include "tools/views/history.h"

#include <stdlib.h>
#include <string.h>

/* MARGIN: columns in front of the curve, for a size and the axis. */
enum { ROWS = 5, DEVICE_ROWS = 2, MARGIN = 15, COLUMNS_MOST = 240, NAME_MOST = 24 };

static const char *report_curve_axis(void) { return text_is_utf8() ? "│" : "|"; }

static void put_row(const char *label, const uint64_t *columns, size_t count, uint64_t most, int row, int rows) {
    printf("  %*s %s", MARGIN - 4, label, report_curve_axis());
    size_t end = count;
    while (end && columns[end - 1] * (uint64_t)rows <= most * (uint64_t)row) end--;
    for (size_t i = 0; i < end; i++) {
        double eighths = (double)columns[i] / (double)most * rows * 8 - row * 8;
        bool first = row == 0 && columns[i] && eighths < 1;
        fputs(history_bar(eighths > 0 ? first ? 1 : (uint64_t)eighths : 0), stdout);
    }
    putchar('\n');
}

/* Prints the rows of a curve. The highest row is labelled with the most bytes, the lowest row with `name`. */
static void put_rows(const char *name, const uint64_t *columns, size_t count, int rows) {
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++) most = columns[i] > most ? columns[i] : most;
    for (int row = rows; row-- > 0 && most;) {
        char size[16];
        snprintf(size, sizeof size, "%.12s", text_size(most).s);
        put_row(row == rows - 1 ? size : row ? "" : name, columns, count, most, row, rows);
    }
}

static void put_devices(const struct history *history, uint64_t *columns, size_t count) {
    for (uint32_t device = 0; device < SNAP_POINT_DEVICES; device++) {
        char name[16];
        snprintf(name, sizeof name, "device %u", device);
        history_device_columns(history, device, columns, count);
        put_rows(name, columns, count, DEVICE_ROWS);
    }
}

/* --- the names of marks --- */

struct cells {
    char cells[COLUMNS_MOST][UTF8_MOST + 1];
    bool taken[COLUMNS_MOST]; /* a mark or a name is here; a blank of a name counts, too */
    size_t count;
};

static bool is_free(const struct cells *self, size_t from, size_t count) {
    for (size_t i = from ? from - 1 : 0; i < from + count + 1 && i < self->count; i++)
        if (self->taken[i]) return false;
    return from + count <= self->count;
}

static void put_text(struct cells *self, size_t at, const char *text) {
    for (; *text && at < self->count; at++) {
        size_t length = utf8_printable(text, strnlen(text, UTF8_MOST));
        if (!length) length = 1;
        memcpy(self->cells[at], text, length);
        self->cells[at][length] = 0;
        self->taken[at] = true;
        text += length;
    }
}

/* Puts the mark, with its name on the right or on the left of it. If there is no space for the name on either side,
 * puts the mark alone, or nothing if its column is taken. */
static void put_mark(struct cells *self, size_t column, const char *name) {
    const char *sign = text_is_utf8() ? "▴" : "^";
    struct text_line words = text_fit(name, NAME_MOST);
    size_t length = (size_t)text_columns(words.s) + 1;
    bool right = is_free(self, column, length + 1);
    bool left = !right && column >= length && is_free(self, column - length, length + 1);
    if (right) put_text(self, column + 2, words.s);
    if (left) put_text(self, column - length, words.s);
    if (right || left || !self->taken[column]) put_text(self, column, sign);
}

/* The rank of a mark. Marks of the highest rank get their names first. Marks of rank 0 are not shown in the text. */
static int report_curve_rank(const struct snap_mark *mark) {
    switch (mark->kind) {
    case SNAP_MARK_OUT_OF_MEMORY:
        return 5;
    case HISTORY_PEAK:
        return 4;
    case SNAP_MARK_RUN_BEGAN:
        return 3;
    case SNAP_MARK_STOWED:
    case SNAP_MARK_FREED:
    case SNAP_MARK_RESTORED:
        return 2;
    case SNAP_MARK_CAME:
        return 1;
    default:
        return 0;
    }
}

static void put_marks(const struct history *history, size_t count) {
    struct cells cells = {.count = count};
    for (size_t i = 0; i < count; i++) strcpy(cells.cells[i], " ");
    for (int wanted = 5; wanted; wanted--)
        for (size_t i = 0; i < history->mark_count; i++)
            if (report_curve_rank(&history->marks[i]) == wanted)
                put_mark(&cells, history_column(history, history->marks[i].time_ns, count),
                         history_words(history, &history->marks[i]).s);
    size_t end = count;
    while (end && cells.cells[end - 1][0] == ' ') end--;
    if (!end) return;
    printf("%*s", MARGIN, "");
    for (size_t i = 0; i < end; i++) fputs(cells.cells[i], stdout);
    putchar('\n');
}

/* --- the curves with their axis and marks --- */

static void put_axis(size_t count) {
    printf("  %*s %s", MARGIN - 4, "0", text_is_utf8() ? "└" : "+");
    for (size_t i = 0; i < count; i++) fputs(text_is_utf8() ? "─" : "-", stdout);
    putchar('\n');
}

int report_text_history(const struct report *report) {
    struct history history;
    uint64_t columns[COLUMNS_MOST];
    int result = history_make(&history, report->image);
    if (result == 0 && !report->match && history_has_curve(&history)) {
        size_t count = (size_t)text_width() - MARGIN - 1;
        history_columns(&history, columns, count);
        text_heading("Over time");
        put_rows("", columns, count, ROWS);
        put_axis(count);
        put_devices(&history, columns, count);
        put_marks(&history, count);
        printf("%*s0 s%*s\n", MARGIN, "", (int)count - 3, text_duration(history.end_ns - history.start_ns).s);
    }
    history_clear(&history);
    return result;
}
