/* html_fit.h — as many sites one by one as a page has room for.
 * In: a tree with its leaves, and what writes the columns of what was built. Out: those columns, in memory. What they
 * take is only known once they are compressed: where much room is left, or there was too little, they are made anew. */
#ifndef MEMSTOW_HTML_FIT_H
#define MEMSTOW_HTML_FIT_H

#include "tools/html/html_page.h"
#include "tools/html/html_tree.h"

struct html_fit {
    char *text;
    size_t size;
};

/* `most`: leaves that stand by themselves, at most. 0, or -1: no memory. html_fit_end() comes whatever the result is.
 */
int html_fit_begin(struct html_fit *fit, struct html_tree *tree, size_t most, html_data *write, void *context);
void html_fit_end(struct html_fit *fit);

#endif
