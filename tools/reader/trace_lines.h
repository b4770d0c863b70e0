/* trace_lines.h — the trace of decisions in a file, read as whole lines.
 * In: the ring that holds the lines (snapshot.h), which is not trusted, and to which its process may be writing. Out:
 * complete lines, each a JSON object as the library wrote it. */
#ifndef MEMSTOW_TRACE_LINES_H
#define MEMSTOW_TRACE_LINES_H

#include "preload/shared/jsontext.h"
#include "tools/image/image.h"
#include "tools/reader/reader.h"

/* Copies the whole lines into image->trace, as a ring that is exactly full. Returns 0 or -1. */
int trace_lines_load(struct reader *reader);

struct trace_line {
    uint64_t number;
    struct jsontext object;
};
/* The next line; false at the end. Start with *at = 0. */
bool trace_lines_next(const struct image *image, size_t *at, struct trace_line *line);

#endif
