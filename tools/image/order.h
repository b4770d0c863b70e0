/* order.h — sorts the nodes of an image, parents first.
 * In: nodes in any order, and totals that refer to them. Out: nodes whose parent has a lower id, so that one pass can
 * add up or pass down any figure. */
#ifndef MEMSTOW_ORDER_H
#define MEMSTOW_ORDER_H

#include "tools/image/image.h"

/* Sorts the nodes, and gives them new ids. A node whose chain of parents does not lead to node 0, as in a hostile file,
 * becomes an empty stack. Returns 0, or -1: no memory. */
int order_nodes(struct image *image);

#endif
