/* site_lines.h — a call site in a list: figures in a margin on the left, owner and innermost frames beside it.
 * In: texts for the margin, one for each line, and the lines of a stack. Out: lines on standard output, as wide as the
 * terminal. */
#ifndef MEMSTOW_SITE_LINES_H
#define MEMSTOW_SITE_LINES_H

#include "tools/symbols/innermost.h"

struct margin {
    int width;
    const char *style;  /* of the first line, from text_style(); NULL: plain */
    size_t count, next; /* how many texts `lines` has, and the index of the text for the next line */
    char lines[2][80];
};

void site_margin_add(struct margin *margin, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints one line: the next text of the margin, and `text` beside it. `text` may be "". */
void site_line(struct margin *margin, const char *text);
/* Prints the owners on as few lines as possible. NULL: there is no owner of that kind. */
void site_owners(struct margin *margin, const char *model, const char *node, const char *run);
/* Prints the frames, or the given text if there are none. Then prints the rest of the margin. */
void site_lines(struct margin *margin, const struct innermost *stack, const char *otherwise);
/* The columns beside the margin. */
int site_width(const struct margin *margin);

#endif
