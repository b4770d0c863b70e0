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

/* What a process had at the first look at it is where its growth begins. */
static int processes_take(struct processes *processes, const struct tracked *tracked) {
    struct rows *rows = &processes->rows;
    size_t before = rows->count;
    uint32_t row = rows_find(rows, (uint64_t)tracked->pid);
    if (row == ROWS_NONE) return -1;
    rows_set(rows, row, (int64_t)tracked->live, 0);
    if (rows->count == before) return 0;
    rows_add_began(rows, row, (int64_t)tracked->live);
    rows->before[row] = (int64_t)tracked->live;
    return 0;
}

int processes_look(struct processes *processes) {
    struct tracked_list list = {0};
    uint64_t now = duration_now();
    if (tracked_collect(&list) < 0) return -1;
    free(processes->list.items);
    processes->list = list;
    if (!processes->begin_ns) processes->begin_ns = now;
    processes->seconds = processes->look_ns ? (double)(now - processes->look_ns) / 1e9 : 0;
    processes->look_ns = now;
    rows_look(&processes->rows);
    int result = 0;
    for (size_t i = 0; i < list.count && result == 0; i++) result = processes_take(processes, &list.items[i]);
    for (size_t i = 0; i < processes->rows.count; i++) /* also a process with nothing is in the list */
        processes->rows.shown[i] = processes_find(processes, processes->rows.keys[i]) != NULL;
    return result;
}

void processes_end(struct processes *processes) {
    free(processes->list.items);
    rows_end(&processes->rows);
    *processes = (struct processes){0};
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
