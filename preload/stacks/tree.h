/* tree.h — from call stacks to ids (places), and back.
 * In: frame ids, outermost first. Out: the place of each stack, in the ledger (SNAP_RUN). Equal stacks have the same
 * place, with one exception: if two threads add the same new stack at the same instant, it may get two places. Readers
 * merge such twins. Any thread and any signal handler may ask. A known stack is found without a lock.
 *
 * Most outer frames of a new stack are in the tree already. The inner frames, from the first unknown frame on, are
 * stored in consecutive words as a run, or as several runs if they are many. So most steps inwards go to the next word
 * of memory, and a look-up is needed only where stacks part. */
#ifndef MEMSTOW_TREE_H
#define MEMSTOW_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/ids.h"
#include "preload/base/index.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { TREE_ROOT = 0, TREE_NONE = UINT32_MAX };

/* Finds the place of frames[0] inside of the place `at`. If frames[0] has no place there, makes places for it and for
 * the next frames, as many as fit into one run. `count` > 0. TREE_NONE: there is no memory. */
uint32_t tree_step(uint32_t at, const uint32_t *frames, uint32_t count);

/* Returns a place that can have a site, for the stack that ends at `place`. Only the innermost place of a run can have
 * a site. If `place` is not the innermost of its run, the stack gets a second place. TREE_NONE: there is no memory. */
uint32_t tree_stack(uint32_t place);
/* As tree_stack, but makes no place. Returns TREE_NONE if there is no place yet that tree_stack would return. */
uint32_t tree_stack_known(uint32_t place);

/* The address of the word that holds the untagged site of a stack from tree_stack. The word is 0 while the stack has no
 * site. */
uint32_t *tree_site(uint32_t stack);

/* The next place outwards; `place` is not the root. */
uint32_t tree_outer(uint32_t place);
/* tree_first: the outermost place of the run that contains `place`. tree_outside: the next place outwards from it. */
uint32_t tree_first(uint32_t place);
uint32_t tree_outside(uint32_t place);
/* The id of the frame at a place; SNAP_RUN_FRAME: the place has none. */
uint32_t tree_frame(uint32_t place);

/* --- giving words back (fold.c) --- */

/* The result of one step of tree_hide or tree_give_away. Steps are small, so that no allocation waits for long. */
enum progress {
    PROGRESS_MORE,
    PROGRESS_DONE,
    PROGRESS_LATER, /* nothing could be done now */
    PROGRESS_OVER,  /* the work cannot be done */
};

/* The state of tree_hide or tree_give_away between calls. Set it to zero before the first call of either function. */
struct tree_walk {
    uint32_t step, at, length;
    struct index_walk index;
};

/* Makes the sets of used and of hidden runs, which the functions below need. False: there is no memory. */
bool tree_make_ready(void);
/* Marks all runs of frames of a stack as used. The marks stay until tree_forget_uses. */
void tree_use(uint32_t stack);
void tree_forget_uses(void);
/* Hides each run that is not marked as used: look-ups no longer find it. A thread that already has a place in it may go
 * on using that place. */
enum progress tree_hide(struct tree_walk *walk);
/* Call it when no thread can have a hidden place any more. The words of hidden runs that are not in use become free.
 * Hidden runs that are in use become visible to look-ups. The exception: if another run with the same start was added
 * meanwhile, the hidden run stays hidden until a later fold frees it. */
enum progress tree_give_away(struct tree_walk *walk);

/* The bytes of memory that the tree uses, including the table that finds runs. */
uint64_t tree_bytes(void);
/* The used ids, in units of 1/BUDGET_IDS of all ids (budget.h). */
uint64_t tree_ids(void);

/* Makes an empty tree. False: there is no memory for it. */
bool tree_begin(void);

#pragma GCC visibility pop

#endif
