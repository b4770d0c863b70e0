/* html_choice.h — which sites a page shows singly.
 * In: a tree with its leaves, and limits. Out: each leaf with the node where it is shown: its own, or the nearest outer
 * one that is shown anyway, with which it is merged. The largest leaves come first, so sums stay exact and the size of
 * the file has a limit, however large the program is. */
#ifndef MEMSTOW_HTML_CHOICE_H
#define MEMSTOW_HTML_CHOICE_H

#include "tools/html/html_tree.h"

/* Chooses the single leaves: at most `most`, and no more than fit into `bytes` bytes of a file. It may be called again.
 * Returns 0, or -1: no memory. */
int html_choice_make(struct html_tree *tree, size_t most, size_t bytes);

#endif
