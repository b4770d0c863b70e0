/* html_lines.h — the lines of call stacks for a page (a line: a function with its file and line number). Each text is
 * stored once.
 * In: frames of one image or two. Out: the numbers of their lines, and columns (arrays of figures) of a page. Frames
 * with the same text are one line, even in different images. */
#ifndef MEMSTOW_HTML_LINES_H
#define MEMSTOW_HTML_LINES_H

#include "tools/html/html_out.h"
#include "tools/symbols/symbols.h"

enum html_line_kind {
    HTML_LINE_PYTHON = 1,
    HTML_LINE_IMPORT = 2,       /* part of Python's import machinery */
    HTML_LINE_ALLOCATOR = 4,    /* allocates memory for other functions */
    HTML_LINE_UNNAMED = 8,      /* the function is not known: the line's text says where the code is */
    HTML_LINE_INTERPRETER = 16, /* part of Python's own native code */
};

struct html_lines {
    struct html_text *texts;   /* a hash table by text */
    struct html_text **listed; /* by number */
    struct html_line *table;   /* a hash table by content */
    struct html_line **lines;  /* by number */
    size_t text_count, text_capacity, line_count, line_capacity;
    bool failed; /* no memory */
};

void html_lines_begin(struct html_lines *lines);
void html_lines_end(struct html_lines *lines);

/* Finds the lines of a frame. If functions were inlined, the outermost comes first. Returns how many lines there are,
 * at most `most`. */
size_t html_lines_frame(struct html_lines *lines, const struct image *image, struct symbols *symbols, uint32_t id,
                        uint32_t *numbers, size_t most);
/* The line of a site without a call stack: its module, or "(call stack unknown)". */
uint32_t html_lines_module(struct html_lines *lines, const char *module);

/* Writes the group "lines" and the document "texts". Returns 0, or -1: no memory. */
int html_lines_write(const struct html_lines *lines, struct html_out *out);

#endif
