/* order.c — see order.h. Files that this version of memstow writes are in order already. */
#include "tools/image/order.h"

#include <stdlib.h>

/* Markers in place of a new id. ON_THE_ROUTE: nodes_number() has passed the node on its way outwards, and is about to
 * number it. */
enum { UNSEEN = 0, ON_THE_ROUTE = UINT32_MAX };

static const struct snap_node empty = {.segment = UINT32_MAX};

static bool in_order(const struct image *image) {
    for (size_t i = 1; i < image->node_count; i++)
        if (image->nodes[i].parent >= i) return false;
    return true;
}

/* Gives new numbers, from `next` on, to a node and its ancestors that have no new number yet, the outermost first.
 * Returns the next free number. */
static uint32_t nodes_number(struct image *image, uint32_t node, uint32_t *numbers, uint32_t *route, uint32_t next) {
    size_t length = 0;
    while (node && node < image->node_count && numbers[node] == UNSEEN) {
        numbers[node] = ON_THE_ROUTE;
        route[length++] = node;
        node = image->nodes[node].parent;
    }
    /* `node` is now the parent of the last node on the route: it may be outside the table, or itself on the route */
    bool lost = node >= image->node_count || numbers[node] == ON_THE_ROUTE;
    if (lost) image->nodes[route[length - 1]] = empty;
    while (length) numbers[route[--length]] = next++;
    return next;
}

/* Puts the new numbers into everything that refers to a node. */
static void order_renumber(struct image *image, const uint32_t *numbers, struct snap_node *ordered) {
    ordered[0] = empty;
    for (size_t i = 1; i < image->node_count; i++) {
        ordered[numbers[i]] = image->nodes[i];
        ordered[numbers[i]].parent = numbers[image->nodes[i].parent];
    }
    for (size_t i = 0; i < image->total_count; i++)
        if (image->totals[i].stack < image->node_count) image->totals[i].stack = numbers[image->totals[i].stack];
    free(image->nodes);
    image->nodes = ordered;
}

int order_nodes(struct image *image) {
    if (image->node_count) image->nodes[0] = empty;
    if (in_order(image)) return 0;
    uint32_t *numbers = calloc(image->node_count, sizeof *numbers), next = 1;
    uint32_t *route = malloc(image->node_count * sizeof *route);
    struct snap_node *ordered = malloc((image->node_count + 1) * sizeof *ordered);
    for (uint32_t i = 1; numbers && route && ordered && i < image->node_count; i++)
        next = nodes_number(image, i, numbers, route, next);
    bool done = numbers && route && ordered;
    if (done)
        order_renumber(image, numbers, ordered);
    else
        free(ordered);
    free(route);
    free(numbers);
    return done ? 0 : -1;
}
