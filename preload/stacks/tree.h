/* tree.h — call stacks ↔ ids.
 * In: frame ids, outermost first. Out: the place of each stack, in the ledger (SNAP_RUN). The same stack has the same
 * place, but for two threads that come with a new one at the same instant: readers join such.
 * No lock; any thread, any signal handler.
 *
 * A stack that is new leaves a known one at some place, and all its frames from there inwards become one run. So most
 * steps inwards are to the next word of memory; only where stacks part is there something to look up. */
#ifndef MEMSTOW_TREE_H
#define MEMSTOW_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/ids.h"
#include "preload/base/index.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { TREE_ROOT = 0, TREE_NONE = UINT32_MAX };

/* The place of the first of these frames inside of the place `at`. If there is none, it is made, and so is that of some
 * that follow: all at once, when they fit. `count` > 0. TREE_NONE: there is no room. */
uint32_t tree_step(uint32_t at, const uint32_t *frames, uint32_t count);

/* The stack that ends at a place: another place, unless it is the last of its run, because only such have a site.
 * TREE_NONE: there is no room. */
uint32_t tree_stack(uint32_t place);
/* The same if it is there already, else TREE_NONE. */
uint32_t tree_stack_known(uint32_t place);

/* The site of a stack that tree_stack gave, untagged; 0: it has none yet. */
uint32_t *tree_site(uint32_t stack);

/* From a place outwards; it is not the root. */
uint32_t tree_outer(uint32_t place);
/* The first place of the same run, and the place that the run lies inside of. */
uint32_t tree_first(uint32_t place);
uint32_t tree_outside(uint32_t place);
/* SNAP_RUN_FRAME: none. */
uint32_t tree_frame(uint32_t place);

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
/* The runs of the stack are in use, until all uses are forgotten. */
void tree_use(uint32_t stack);
void tree_forget_uses(void);
/* Hides each run of frames that is not in use: no thread finds it any more, but a thread that has a place of it may go
 * on using it. */
enum progress tree_hide(struct tree_walk *walk);
/* Once nobody can have them any more: those that are in use by now are shown again (unless they have a twin), and the
 * words of all others go to other stacks. */
enum progress tree_give_away(struct tree_walk *walk);

/* Memory in use, with the table that finds runs, bytes. */
uint64_t tree_bytes(void);

/* False: there is no room even for an empty tree. */
bool tree_begin(void);

#pragma GCC visibility pop

#endif
