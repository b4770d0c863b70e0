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
#include "index.h"
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

/* Work that is done a little at a time, so that no allocation waits for long. */
enum progress {
    PROGRESS_MORE,
    PROGRESS_DONE,
    PROGRESS_LATER /* not now: nothing was done */,
    PROGRESS_OVER /* not at all */
};

/* How far it is: all zero at the beginning of each step. */
struct tree_walk {
    uint32_t step, at, length;
    struct index_walk index;
};

/* False: there is no memory for it. */
bool tree_make_ready(void);
/* The node, all around it, and their segments are in use, until all uses are forgotten. */
void tree_use(uint32_t node);
void tree_forget_uses(void);
/* Hides each node and segment that is not in use: nobody finds them any more, but who has them may go on using them. */
enum progress tree_hide(struct tree_walk *walk);
/* Once nobody can have them any more: those that are in use by now are shown again (unless they have a twin), and the
 * ids of all others go to other stacks. */
enum progress tree_give_away(struct tree_walk *walk);

/* Memory in use by nodes, and by segments, with the tables that find them, bytes. */
uint64_t tree_node_bytes(void);
uint64_t tree_segment_bytes(void);

/* False: there is no room even for an empty tree. */
bool tree_begin(void);
/* In a forked child, with the ledger that it inherited. */
void tree_abandon(void);

#pragma GCC visibility pop

#endif
