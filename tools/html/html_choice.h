/* html_choice.h — chooses the sites that a page shows singly.
 * In: a tree with its leaves (one for each site), and limits. Out: for each leaf the node at which the page shows it. A
 * leaf that is shown singly is at its own node. All other leaves are merged, each at the nearest outer node that the
 * page has anyway. The leaves with the largest weights are chosen first. Sums stay exact, and the size of the file has
 * a limit, however large the program is. */
#ifndef MEMSTOW_HTML_CHOICE_H
#define MEMSTOW_HTML_CHOICE_H

#include "tools/html/html_tree.h"

/* Chooses the leaves that are not merged with others: at most `most` leaves, and about as many as fit into `bytes`
 * bytes of a file. Costs are estimated. This function can be called again. Returns 0, or -1 if there is no memory. */
int html_choice_make(struct html_tree *tree, size_t most, size_t bytes);

/* Chooses all leaves if they cost at most `bytes` bytes, and returns 1. If they cost more, returns 0, and
 * html_choice_make must be called. Returns -1 if there is no memory. */
int html_choice_all(struct html_tree *tree, size_t bytes);

#endif
