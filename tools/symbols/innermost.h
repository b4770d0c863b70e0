/* innermost.h — the few lines of a call stack that say where an allocation comes from.
 * In: a node. Out: its innermost frames; or, where Python calls in, the innermost two and the Python lines that led
 * there. */
#ifndef MEMSTOW_INNERMOST_H
#define MEMSTOW_INNERMOST_H

#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

#include <stdio.h>

enum {
    INNERMOST_NATIVE = 4,       /* lines of a stack without Python further out */
    INNERMOST_BELOW_PYTHON = 2, /* lines inside the innermost Python frame */
    INNERMOST_PYTHON = 3,
    INNERMOST_LINES =
        16 /* and one frame between two of them, or behind the last, where it would be the only one left out */
};

struct innermost {
    struct innermost_line {
        const struct named_frame *frame;
        const struct symbol *symbol;
        size_t skipped; /* frames left out in front of this line */
    } lines[INNERMOST_LINES];
    size_t count;
    size_t more; /* frames further out */
};

/* No line for a stack that the image does not have. */
void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node);

/* One line for the whole stack: the innermost Python line; without Python the first function that is not the
 * allocator's, or C++'s own. False for a stack that the image does not have. */
bool innermost_caller(struct innermost_line *line, const struct image *image, struct symbols *symbols, uint32_t node);

/* A Python frame of the import machinery, which Python leaves out of its own tracebacks. */
bool innermost_is_import(const struct image *image, uint32_t frame);
/* A Python frame of more than that. */
bool innermost_is_python(const struct image *image, uint32_t frame);

/* A function that takes memory for others: operator new, the C++ library's, and what is called like malloc. */
bool innermost_is_allocator(const char *function);

/* "py function  file:line", or three blanks in front where it is not Python; `width` columns at most. */
struct text_line innermost_text(const struct innermost_line *line, int width);

/* All lines, each behind so many blanks, for a list that is no wider than 100 columns. */
void innermost_print(const struct innermost *innermost, FILE *to, int indent);

#endif
