/* processes.c — see processes.h. */
#include "tools/top/processes.h"
#include "tools/base/duration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 16, PID_AND_NAME = 7 + 1 + NAME + 1 };

static const struct tracked *processes_find(const struct processes *processes, uint64_t pid) {
    for (size_t i = 0; i < processes->list.count; i++)
        if ((uint64_t)processes->list.items[i].pid == pid) return &processes->list.items[i];
    return NULL;
}

/* The row of the same program at the previous look; ROWS_NONE: there is none. The pid alone does not tell, because
 * another process may have it now. */
static uint32_t row_before(const struct processes *processes, const struct tracked *tracked) {
    for (uint32_t row = 0; row < processes->rows.count; row++)
        if (processes->rows.keys[row] == (uint64_t)tracked->pid)
            return processes->since[row].start_ns == tracked->start_ns ? row : ROWS_NONE;
    return ROWS_NONE;
}

/* Adds the row of a process. Its growth begins with its memory at the first look. */
static int row_add(const struct processes *processes, const struct tracked *tracked, struct rows *rows,
                   struct process_since *since, uint64_t now) {
    uint32_t row = rows_find(rows, (uint64_t)tracked->pid), old = row_before(processes, tracked);
    int64_t live = (int64_t)tracked->live;
    if (row == ROWS_NONE) return -1;
    rows_set(rows, row, live, 0);
    rows_add_began(rows, row, old == ROWS_NONE ? live : processes->rows.began[old]);
    rows->before[row] = old == ROWS_NONE ? live : processes->rows.live[old];
    rows_show(rows, row); /* a process without memory is in the list, too */
    since[row] = (struct process_since){tracked->start_ns, old == ROWS_NONE ? now : processes->since[old].seen_ns};
    return 0;
}

int processes_take(struct processes *processes, struct tracked_list list, uint64_t now) {
    struct rows rows = {0};
    struct process_since *since = calloc(list.count + 1, sizeof *since);
    int result = since ? 0 : -1;
    for (size_t i = 0; i < list.count && result == 0; i++)
        result = row_add(processes, &list.items[i], &rows, since, now);
    if (result < 0) {
        free(list.items);
        free(since);
        rows_end(&rows);
        return -1;
    }
    uint64_t before = processes->look_ns;
    processes_end(processes);
    *processes = (struct processes){.list = list,
                                    .rows = rows,
                                    .since = since,
                                    .look_ns = now,
                                    .seconds = before ? (double)(now - before) / 1e9 : 0};
    return 0;
}

int processes_look(struct processes *processes, char *error, size_t size) {
    struct tracked_list list = {0};
    if (tracked_collect(&list, error, size) < 0) {
        free(list.items);
        return -1;
    }
    if (processes_take(processes, list, duration_now()) == 0) return 0;
    snprintf(error, size, "not enough memory");
    return -1;
}

void processes_end(struct processes *processes) {
    free(processes->list.items);
    free(processes->since);
    rows_end(&processes->rows);
    *processes = (struct processes){0};
}

double processes_seconds(const struct processes *processes, uint32_t row) {
    return (double)(processes->look_ns - processes->since[row].seen_ns) / 1e9;
}

struct text_line processes_name(const struct processes *processes, uint64_t pid, int width) {
    const struct tracked *tracked = processes_find(processes, pid);
    struct text_line line = {""};
    if (!tracked) return line;
    int rest = width > PID_AND_NAME + 3 ? width - PID_AND_NAME : 3;
    snprintf(line.s, sizeof line.s, "%7d %.100s %.700s", (int)tracked->pid, text_left(tracked->name, NAME).s,
             text_fit_path(*tracked->path ? tracked->path : "(in memory)", rest).s);
    return line;
}

void processes_search(struct processes *processes, const char *text) {
    for (size_t i = 0; i < processes->rows.count; i++)
        rows_keep(&processes->rows, (uint32_t)i,
                  !*text || strcasestr(processes_name(processes, processes->rows.keys[i], 300).s, text) != NULL);
}
