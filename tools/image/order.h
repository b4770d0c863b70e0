/* order.h — the nodes of an image, parents first.
 * In: nodes as a file has them, in whatever order, and totals that refer to them. Out: nodes whose parent's id is lower
 * than their own, so that one pass over them adds up or hands down whatever is wanted. */
#ifndef MEMSTOW_ORDER_H
#define MEMSTOW_ORDER_H

#include "tools/image/image.h"

/* 0, or -1: no memory. Nodes without a way to node 0 become empty stacks: a hostile file has such. */
int order_nodes(struct image *image);

#endif
