/* leak_lines.h — joins sites of one line of Python that follow one another in time. CPython 3.11 and later specialise a
 * call after some executions, which changes the native frames below the line. Without joining, one leak or one cache
 * would be two sites, each with too few runs for a verdict.
 * In: sites, and the memory that runs left there. Out: the same sites, some of which have taken over the memory of
 * others. */
#ifndef MEMSTOW_LEAK_LINES_H
#define MEMSTOW_LEAK_LINES_H

#include "tools/leaks/leak_sites.h"

/* Joins the sites. No image may be read into them after that. Returns 0, or -1: no memory. */
int leak_lines_join(struct leak_sites *sites);

#endif
