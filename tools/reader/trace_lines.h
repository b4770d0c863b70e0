/* trace_lines.h — the trace of decisions in a file, as whole lines.
 * In: a ring as in snapshot.h, which is not trusted and may be written to meanwhile. Out: complete lines, each a JSON
 * object as the library wrote it. */
#ifndef MEMSTOW_TRACE_LINES_H
#define MEMSTOW_TRACE_LINES_H

#include "preload/shared/jsontext.h"
#include "tools/image/image.h"
#include "tools/reader/reader.h"

/* Fills image->trace with a ring of whole lines and no free space. Returns 0 or -1. */
int trace_lines_load(struct reader *reader);

struct trace_line {
    uint64_t number;
    struct jsontext object;
};
/* The next line; false at the end. Start with *at = 0. */
bool trace_lines_next(const struct image *image, size_t *at, struct trace_line *line);

#endif
