/* html_lines.h — the lines of call stacks, as a page shows them: each text once.
 * In: frames of one image or two, which are named here. Out: the numbers of their lines, and columns of a page. Frames
 * that read the same, of whichever image, are one line. */
#ifndef MEMSTOW_HTML_LINES_H
#define MEMSTOW_HTML_LINES_H

#include "tools/html/html_out.h"
#include "tools/symbols/symbols.h"

enum html_line_kind {
    HTML_LINE_PYTHON = 1,
    HTML_LINE_IMPORT = 2,       /* of Python's import machinery */
    HTML_LINE_ALLOCATOR = 4,    /* takes memory for others */
    HTML_LINE_UNNAMED = 8,      /* its function is not known: its text is a place */
    HTML_LINE_INTERPRETER = 16, /* of Python's own native code */
};

struct html_lines {
    struct html_text *texts;   /* a table by their bytes */
    struct html_text **listed; /* by number */
    struct html_line *table;   /* by what they are */
    struct html_line **lines;  /* by number */
    size_t text_count, text_room, line_count, line_room;
    bool failed; /* no memory */
};

void html_lines_begin(struct html_lines *lines);
void html_lines_end(struct html_lines *lines);

/* Lines of a frame, the outermost of inlined functions first: their number, at most `most`. */
size_t html_lines_frame(struct html_lines *lines, const struct image *image, struct symbols *symbols, uint32_t frame,
                        uint32_t *numbers, size_t most);
/* The line of a site without a call stack: its module, or that nothing is known. */
uint32_t html_lines_module(struct html_lines *lines, const char *module);

/* The groups "lines" and the document "texts". 0, or -1: no memory. */
int html_lines_write(const struct html_lines *lines, struct html_out *out);

#endif
