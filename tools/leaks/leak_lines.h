/* leak_lines.h — joins call stacks of one line of Python that follow one another.
 * In: sites with the remains of runs. Out: the same sites, of which some have the memory of others, too. CPython 3.11
 * and later specialise a call after some executions. The native frames below the line then change, and one leak or one
 * cache would be two sites, each with too few runs for a verdict. */
#ifndef MEMSTOW_LEAK_LINES_H
#define MEMSTOW_LEAK_LINES_H

#include "tools/leaks/leak_sites.h"

/* Joins them. The sites take no further readings after that. Returns 0, or -1: no memory. */
int leak_lines_join(struct leak_sites *sites);

#endif
