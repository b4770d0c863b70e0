/* fold.h — takes the ids of sites from call stacks without live blocks, and gives them to new stacks. So a program that
 * does its work many times takes no more memory than one that does it a few times.
 * In: requests for memory, ends of runs of the program's work. Out: free ids of sites, free memory in the tree of
 * stacks (tree.h). The counts of a stack that loses its id go to an outer stack (that of a caller), or, if it has
 * owners, to these owners without a stack. So totals stay exact. The stack that lost its id is forgotten, and the
 * report says how often that happened (SNAP_LOST_FOLDED).
 *
 * No thread waits. First, the ids to be freed are hidden, so no thread finds them any more. They are given to other
 * stacks after every thread has been seen twice without an id in use (pin_begin); docs/stacks.md says why twice. The
 * work is done in slices of half a millisecond, by threads whose stack takes time to look up anyway. */
#ifndef MEMSTOW_FOLD_H
#define MEMSTOW_FOLD_H

#pragma GCC visibility push(hidden)

/* At the start of tracking: from now on budget_relieve does the requested work, slice by slice. */
void fold_begin(void);

#pragma GCC visibility pop

#endif
