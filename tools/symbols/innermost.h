/* innermost.h — the few lines of a call stack that show where an allocation comes from.
 * In: a node. Out: its innermost frames; or, if Python is further out, the innermost two and the Python lines that led
 * there. */
#ifndef MEMSTOW_INNERMOST_H
#define MEMSTOW_INNERMOST_H

#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

#include <stdio.h>

enum {
    INNERMOST_NATIVE = 4,       /* lines of a stack without Python */
    INNERMOST_BELOW_PYTHON = 2, /* lines inside the innermost Python frame */
    INNERMOST_PYTHON = 3,
    INNERMOST_LINES =
        16 /* and one frame between two of them, or behind the last, if it would be the only one left out */
};

struct innermost {
    struct innermost_line {
        const struct named_frame *frame;
        const struct symbol *symbol;
        size_t skipped; /* frames that are left out before this line */
    } lines[INNERMOST_LINES];
    size_t count;
    size_t more; /* frames that are left out further out */
};

/* Gives no lines for a stack that the image does not have. */
void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node);

/* One line for the whole stack: the innermost Python line; without Python, the first function outside the allocator and
 * C++'s library. False for a stack that the image does not have. */
bool innermost_caller(struct innermost_line *line, const struct image *image, struct symbols *symbols, uint32_t node);

/* Whether it is a Python frame of the import machinery, which Python leaves out of its own tracebacks. */
bool innermost_is_import(const struct image *image, uint32_t frame);
/* Whether it is any other Python frame. */
bool innermost_is_python(const struct image *image, uint32_t frame);

/* Whether the function allocates memory for others: operator new, functions of the C++ library, and those with names
 * like malloc. */
bool innermost_is_allocator(const char *function);

/* "py function  file:line", with three blanks in place of "py " for native frames; at most `width` columns. */
struct text_line innermost_text(const struct innermost_line *line, int width);

/* Prints all lines, indented, for a list of at most 100 columns. */
void innermost_print(const struct innermost *innermost, FILE *to, int indent);

#endif
