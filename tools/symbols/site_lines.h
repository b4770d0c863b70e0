/* site_lines.h — a call site in a list: its figures in a margin on the left, its owner and its innermost frames beside
 * it. In: texts of the margin, one a line, and the lines of a stack. Out: lines on stdout, as wide as the terminal. */
#ifndef MEMSTOW_SITE_LINES_H
#define MEMSTOW_SITE_LINES_H

#include "tools/symbols/innermost.h"

struct margin {
    int width;
    size_t count, next; /* texts that there are, and the one that the next line has */
    char lines[2][80];
};

void margin_add(struct margin *margin, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of its own; text may be "". */
void site_line(struct margin *margin, const char *text);
/* The owners, on as few lines as it takes; NULL for those that there are not. */
void site_owners(struct margin *margin, const char *model, const char *node, const char *run);
/* The frames; without any, what is said in their place. Then what is left of the margin. */
void site_lines(struct margin *margin, const struct innermost *stack, const char *otherwise);
/* Columns beside the margin. */
int site_width(const struct margin *margin);

#endif
