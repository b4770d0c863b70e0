/* processes.h — the list of tracked processes, looked at again and again.
 * In: /proc. Out: rows by pid, and the name of each row. */
#ifndef MEMSTOW_TOP_PROCESSES_H
#define MEMSTOW_TOP_PROCESSES_H

#include "tools/base/text.h"
#include "tools/subject/tracked.h"
#include "tools/top/rows.h"

struct process_since {
    uint64_t start_ns, seen_ns; /* when the program began, and when top saw it first */
};

struct processes {
    struct tracked_list list;
    struct rows rows;            /* by pid, as of the last look */
    struct process_since *since; /* by row */
    uint64_t look_ns;
    double seconds; /* between the last two looks */
};

/* Takes a look. Before the first look, `processes` is all zeros. Returns 0, or -1 with the reason. */
int processes_look(struct processes *processes, char *error, size_t error_size);
/* Like processes_look, but with a list that is given. It takes over the list. Returns 0, or -1: no memory. */
int processes_take(struct processes *processes, struct tracked_list list, uint64_t now);
/* For how many seconds the process of a row has been looked at. */
double processes_seconds(const struct processes *processes, uint32_t row);
void processes_end(struct processes *processes);
/* "4711 python3  train.mst"; "" if the process is gone. */
struct text_line processes_name(const struct processes *processes, uint64_t pid, int width);
/* Keeps the rows whose name has the text. */
void processes_search(struct processes *processes, const char *text);

#endif
