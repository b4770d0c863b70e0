/* unwind.h — unwinds from the entry of a hook outwards, frame by frame, to a remembered frame or to the end.
 * In: a state, rules (rule.h), Python frames (python.h), the readable part of the stack (view.h). Out: steps. It
 * guesses nothing: where the next step is unknown, the stack ends. All data belong to the calling thread. */
#ifndef MEMSTOW_UNWIND_H
#define MEMSTOW_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stacks/memo.h"
#include "preload/stacks/python.h"
#include "preload/stacks/stack.h"
#include "preload/stacks/view.h"

#pragma GCC visibility push(hidden)

enum outcome {
    GOES_ON, /* the stack goes on outwards. If `unwind` returns GOES_ON, the memo has the outer part */
    ENDED,   /* this is the outermost frame */
    UNKNOWN, /* the caller cannot be found, and never will be from this state */
    BROKEN,  /* the words on the stack make no sense, or memory is lacking; the stack is not remembered */
};

/* The part of a stack that the latest call of unwind has unwound. */
struct unwound {
    struct steps steps;
    uintptr_t handler; /* the slot of the innermost signal frame; 0: none was met */
};

/* Unwinds to a remembered element that is unchanged, or to the end. Afterwards the memo has only that element and those
 * outside of it. If the stack of a signal handler leads onto the thread's own stack, `view` changes to the thread's own
 * stack. */
enum outcome unwind(struct unwound *self, struct memo *memo, struct view *view, struct own_stack *own,
                    const struct caller *caller);

#pragma GCC visibility pop

#endif
