/* memo.h — a thread's memory of the last call stack that it looked up, so that the next one need not be unwound as a
 * whole.
 * In: steps, as they are unwound. Out: whether a later stack continues like the remembered one, and its place in the
 * tree (tree.h). All data belong to one thread. The memo reads the program's stack, and writes nothing there.
 *
 * A memo is a list of elements, outermost first. An element has the state of a frame, and the words of memory from
 * which the step to the next outer frame was read. Suppose that the present stack has the state of an element, and that
 * the words of this element and of all outer ones are unchanged. Then the outer frames are unchanged. */
#ifndef MEMSTOW_MEMO_H
#define MEMSTOW_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stacks/python.h"
#include "preload/stacks/view.h"

#pragma GCC visibility push(hidden)

/* The state of a frame. Execution goes on at `code` (an address, or RULE_INTERRUPTED and an address). rsp is just above
 * `slot`, and rbp has the value `rbp`. */
struct state {
    uintptr_t slot;
    uint64_t code;
    uintptr_t rbp;
};

/* A step from a frame to its caller. The rule and the state of the frame determine the caller's state. A step
 * stores only those parts of the rule and the state that are needed later. */
struct step {
    uintptr_t slot, rbp;
    uint64_t code;  /* the rule's code, which tells also where rbp is saved */
    uint32_t how;   /* from the rule. If RULE_EVAL is set, a struct loop describes the frame's loop */
    uint32_t frame; /* the frame's id in the ledger, from the rule */
};

/* A Python evaluation loop. `anchor` identifies the variable of the loop in its native frame (python.h); 0: not found.
 * The loop's frames begin at python[first] of struct steps, innermost first. */
struct loop {
    uintptr_t anchor;
    uint32_t first, count;
};

/* A part of an unwound stack, innermost first. */
struct steps {
    uint32_t count, loop_count, python_count;
    uint32_t capacity, loop_capacity, python_capacity;
    struct step *steps;
    struct loop *loops;
    struct python_frame *python;
    /* The word that holds 0 in place of the outermost frame's return address; NULL: there is no such word. */
    const uint64_t *end;
};

/* A word of memory and its value. */
struct word {
    const uint64_t *at;
    uint64_t value;
};

struct element {
    struct state state; /* rbp is 0 if no outer frame depends on it */
    uint64_t path;      /* hash of the states and Python frames of this element and all outer ones */
    /* The element's words end at this index of memo.words. The step outwards was read from these words. */
    uint32_t words;
    uint32_t evals; /* the number of Python evaluation loops in this element and all outer ones */
    uint32_t frame; /* the frame's id in the ledger; RULE_NO_FRAME: it has none */
    bool needs_rbp;
    /* For elements that are `placed` in the tree: */
    uint32_t frames; /* the element's frames end at this index of memo.frames */
    uint32_t place;  /* the place (tree.h) of the element's innermost frame; TREE_NONE: no memory */
};

/* A remembered evaluation loop, in the element with the index `element`. Its Python frames, innermost first, end at the
 * index `python` of memo.python. */
struct eval {
    uintptr_t anchor;
    uint32_t element, python;
};

/* What a look-up has found out so far about the elements of a memo, compared with the thread's present stack. */
enum memo_found {
    MEMO_WORDS = 1,  /* the words of the elements are unchanged */
    MEMO_PYTHON = 2, /* the Python frames of all loops are unchanged, except perhaps those of the innermost loop */
};

struct memo {
    uint32_t count;  /* how many elements the memo has */
    uint32_t placed; /* the number of elements that were looked up in the tree */
    uint32_t found;  /* flags of enum memo_found: what the present look-up has found out about all elements */
    /* The capacities of the arrays below; `depth` is that of `elements`. */
    uint32_t depth, words_capacity, frames_capacity, evals_capacity, python_capacity;
    struct element *elements;
    struct word *words;
    uint32_t *frames;
    struct eval *evals;
    struct python_frame *python;
    /* The next two members are used only for a stack other than the thread's own. */
    struct region extent; /* from the deepest slot to the end of the outermost word */
    uint64_t used;        /* stack.clock at the last visit; the memo with the lowest value is forgotten first */
};

/* memo_words: the words of the first k elements end at this index of memo.words. memo_evals: the evaluation loops of
 * the first k elements end at this index of memo.evals. */
static inline uint32_t memo_words(const struct memo *self, uint32_t k) { return k ? self->elements[k - 1].words : 0; }
static inline uint32_t memo_evals(const struct memo *self, uint32_t k) { return k ? self->elements[k - 1].evals : 0; }

static inline bool memo_same_state(const struct element *element, const struct state *state) {
    return element->state.slot == state->slot && element->state.code == state->code &&
           (!element->needs_rbp || element->state.rbp == state->rbp);
}

/* Removes all but the outermost `count` elements. */
static inline void memo_cut(struct memo *self, uint32_t count) {
    self->count = count;
    if (self->placed > count) self->placed = count;
}

/* Whether the first `count` elements are unchanged. If not, the memo is cut: it forgets at least the outermost changed
 * element and all elements inside of it. `inner`: the anchor of the next loop further in on the present stack, or 0.
 * `own`: the stack is the thread's own, so all words can be read. */
bool memo_holds(struct memo *self, uint32_t count, uintptr_t inner, bool own);

/* Forgets which elements were found unchanged. Call it before and after the look-up of a stack. During a look-up,
 * elements that the leaves (leaf.h) have found unchanged are not checked again. A signal handler that interrupts the
 * look-up and looks up its own stack does no harm, because the handler's stack has the same outer part. */
static inline void memo_begin(struct memo *self) { self->found = 0; }

/* Adds steps inside of the remembered ones. The path of an empty memo begins with a hash of `seed`, so paths with
 * different seeds differ. False: the innermost steps were left out, because there was no memory. */
bool memo_push(struct memo *self, const struct steps *steps, uint64_t seed);

/* The id (tree.h) of the thread's present stack, which ends with the innermost element. Only this function uses the
 * tree. It is seldom called, because most stacks are known by their path. */
uint32_t memo_stack(struct memo *self);

#pragma GCC visibility pop

#endif
