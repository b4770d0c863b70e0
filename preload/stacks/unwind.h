/* unwind.h — from the state at the entry of a hook outwards, frame by frame, to a remembered frame or to the end. In: a
 * state, rules (rule.h), Python frames (python.h), the memory of the stack as far as a view goes. Out: steps. It
 * guesses nothing: where the next step is not known, the stack ends. Everything belongs to the calling thread. */
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
    GOES_ON, /* it goes on as is remembered */
    ENDED,   /* this is the outermost frame */
    UNKNOWN, /* the caller cannot be found; it never can, from this state */
    BROKEN,  /* what was read makes no sense: not to be remembered */
};

/* The last part of a stack that was unwound. */
struct unwound {
    struct steps steps;
    uintptr_t handler; /* the slot of the innermost signal frame; 0: none was met */
};

/* Unwinds to an element that is remembered and holds, or to the end; leaves only that element and those outside it. A
 * signal handler's stack may lead onto the thread's own: then the view is of that. */
enum outcome unwind(struct unwound *self, struct memo *memo, struct view *view, struct own_stack *own,
                    const struct caller *caller);

#pragma GCC visibility pop

#endif
