/* innermost.h — the few lines of a call stack that show where an allocation comes from.
 * In: a node of an image, at which the stack ends. Out: the innermost Python frames of the stack or, if
 * it has none, the innermost frames outside of the allocator. */
#ifndef MEMSTOW_INNERMOST_H
#define MEMSTOW_INNERMOST_H

#include "tools/symbols/symbols.h"
#include "tools/base/text.h"

#include <stdio.h>

enum {
    INNERMOST_NATIVE = 4,  /* lines of a stack without Python */
    INNERMOST_PYTHON = 3,  /* lines of a stack with Python */
    INNERMOST_LINES = 512, /* at most, for any stack */
};

struct innermost {
    struct innermost_line {
        const struct named_frame *frame;
        const struct symbol *symbol;
    } lines[INNERMOST_LINES];
    size_t count;
    size_t inside; /* number of hidden frames further in */
    size_t more;   /* number of hidden frames further out */
};

/* For --all-frames: from now on innermost_of() gives all frames of a stack, also those of the allocator and of the
 * import machinery. Commands call this before they print. */
void innermost_show_all(void);
bool innermost_shows_all(void);

/* Finds the lines of the stack that ends at `node`; no lines if the image does not have that node. */
void innermost_of(struct innermost *innermost, const struct image *image, struct symbols *symbols, uint32_t node);

/* Finds one line that stands for the whole stack: the innermost Python line or, in a stack without Python, the first
 * function outside of the allocator and of C++'s library. Returns false if the image does not have the stack. */
bool innermost_caller(struct innermost_line *line, const struct image *image, struct symbols *symbols, uint32_t node);

/* Whether the frame `id` is a Python frame of the import machinery, which Python leaves out of its own tracebacks. */
bool innermost_is_import(const struct image *image, uint32_t id);
/* Whether the frame `id` is a Python frame outside of the import machinery. */
bool innermost_is_python(const struct image *image, uint32_t id);

/* Whether the function allocates memory for its callers: operator new, functions of the C++ library, functions of
 * CPython's and PyTorch's allocators, and functions with names like malloc. */
bool innermost_is_allocator(const char *function);

/* "py function  file:line", with three blanks in place of "py " for native frames; at most `width` columns. */
struct text_line innermost_text(const struct innermost_line *line, int width);

/* Returns how many frames are left out, such as "… 12 more, 3 inner frames". Returns "" if no frame is left out. */
struct text_line innermost_left_out(const struct innermost *innermost);

/* Prints all lines, indented, for a list of at most 100 columns. */
void innermost_print(const struct innermost *innermost, FILE *to, int indent);

#endif
