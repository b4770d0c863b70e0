/* tree.h — call stacks ↔ ids.
 * In: frame ids, outermost first. Out: the node of each stack, in the ledger (SNAP_NODE, SNAP_SEGMENT). The same stack
 * has the same node, but for two threads that come with a new one at the same instant: readers join such.
 * No lock; any thread, any signal handler.
 *
 * A stack is cut into segments at frames that their own id chooses (content-defined chunking), so that a piece that
 * occurs in many stacks is cut in the same places, and stored once. */
#ifndef MEMSTOW_TREE_H
#define MEMSTOW_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "ids.h"
#include "snapshot.h"

#pragma GCC visibility push(hidden)

enum { TREE_ROOT = 0, TREE_NONE = UINT32_MAX };

/* A segment ends after a frame for which this holds, or is as long as it may be. */
enum { TREE_SEGMENT_MAX = 32, TREE_CUT_BITS = 2 };
static inline bool tree_cuts_after(uint32_t frame, uint32_t length) {
    return frame * 0x9E3779B1u >> (32 - TREE_CUT_BITS) == 0 || length >= TREE_SEGMENT_MAX;
}

/* The node of `parent` followed by these frames (1 to TREE_SEGMENT_MAX); TREE_NONE when there is no room. */
uint32_t tree_node(uint32_t parent, const uint32_t *frames, uint32_t count);

/* Of a node that tree_node gave. */
struct snap_node *tree_at(uint32_t node);

/* Of a segment that a node names: its length, and so many frame ids, outermost first. */
const uint32_t *tree_segment(uint32_t segment);

/* --- making room (fold.c) --- */

/* Hides each node that is not in `stay`, and each segment that only such have: nobody finds them any more, but who has
 * them may go on using them. False: not now, nothing is hidden. */
bool tree_hide(const struct ids *stay);
/* Once nobody can have them any more: those that are in `stay` by now are shown again (unless they have a twin), and
 * the ids of all others go to other stacks. False: not now. */
bool tree_give_away(const struct ids *stay);

/* Memory in use by nodes, and by segments, with the tables that find them, bytes. */
uint64_t tree_node_bytes(void);
uint64_t tree_segment_bytes(void);

/* False: there is no room even for an empty tree. */
bool tree_begin(void);
/* In a forked child, with the ledger that it inherited. */
void tree_abandon(void);

#pragma GCC visibility pop

#endif
