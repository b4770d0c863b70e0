/* html_fit.h — finds how many sites a page has space to show singly; all others are merged.
 * In: a tree with its leaves (one for each site), and a function that writes the columns (arrays of figures) of the
 * built tree. Out: the columns, in memory. Their size is known only after compression. If the columns are too large, or
 * much smaller than the space, they are made again with another number of sites. */
#ifndef MEMSTOW_HTML_FIT_H
#define MEMSTOW_HTML_FIT_H

#include "tools/html/html_page.h"
#include "tools/html/html_tree.h"

struct html_fit {
    char *text;
    size_t size;
};

/* Chooses the sites that are shown singly, and writes the columns into fit->text. `most`: how many sites the page may
 * show singly; all others are merged. `limit`: bytes for the columns. Returns 0, or -1: no memory. Call html_fit_end()
 * whatever the result is. */
int html_fit_begin(struct html_fit *fit, struct html_tree *tree, size_t most, size_t limit, html_data *write,
                   void *context);
void html_fit_end(struct html_fit *fit);

/* Halves *count, the number of blocks on a page, until these blocks take at most a third of *limit. Then subtracts from
 * *limit what they take. `write` writes the columns of the blocks, except the column of their sites. Returns 0, or -1:
 * no memory. */
int html_fit_blocks(size_t *count, size_t *limit, html_data *write, void *context);

#endif
