/* processes.h — the list of tracked processes, looked at again and again.
 * In: /proc. Out: rows by pid, and the name of each. */
#ifndef MEMSTOW_TOP_PROCESSES_H
#define MEMSTOW_TOP_PROCESSES_H

#include "tools/base/text.h"
#include "tools/subject/tracked.h"
#include "tools/top/rows.h"

struct processes {
    struct tracked_list list;
    struct rows rows; /* by pid */
    uint64_t look_ns, begin_ns;
    double seconds; /* between the last two looks */
};

/* Returns 0, or -1 with errno. Begin with zeros. */
int processes_look(struct processes *processes);
void processes_end(struct processes *processes);
/* "4711 python3  train.mst"; "" if the process is gone. */
struct text_line processes_name(const struct processes *processes, uint64_t pid, int width);
/* Keeps the rows whose name has the text. */
void processes_search(struct processes *processes, const char *text);

#endif
