/* memo.h — a thread's memory of a stack, so that it need not unwind all of it again. In: steps, as they are unwound.
 * Out: whether a later stack goes on as the remembered one does, and its place in the tree (tree.h). Everything belongs
 * to one thread; it reads the program's stack, and writes nothing there.
 *
 * A memo is a list of elements, outermost first: the state of each frame, and the words of memory from which the step
 * to the next outer frame was read. If a state is a remembered one, and the words from there outwards are unchanged, so
 * is all the rest. */
#ifndef MEMSTOW_MEMO_H
#define MEMSTOW_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stacks/python.h"
#include "preload/stacks/view.h"

#pragma GCC visibility push(hidden)

/* The state of a frame: execution goes on at `place` (an address, or RULE_INTERRUPTED and an address), with rsp just
 * above `slot`, and with this rbp. */
struct state {
    uintptr_t slot;
    uint64_t place;
    uintptr_t rbp;
};

/* A frame on the way outwards. All that the next outer state was read from follows from the rule and from that state;
 * only what is needed later is kept of both. */
struct step {
    uintptr_t slot, rbp;
    uint64_t place; /* as in the rule, with the place where rbp is saved */
    uint32_t how;   /* of the rule. RULE_EVAL: it is a Python evaluation loop, and has a struct loop */
    uint32_t frame; /* of the rule */
};

/* A Python evaluation loop: its frames, innermost first, are those from python[first] on. */
struct loop {
    uintptr_t anchor;
    uint32_t first, count;
};

/* Part of a stack as it was unwound, innermost first. */
struct steps {
    uint32_t count, loop_count, python_count;
    uint32_t room, loop_room, python_room;
    struct step *steps;
    struct loop *loops;
    struct python_frame *python;
    const uint64_t *end; /* where there is 0 in place of the outermost frame's return address; or NULL */
};

/* A word of memory and what it held. */
struct word {
    const uint64_t *at;
    uint64_t value;
};

struct element {
    struct state state; /* rbp is 0 when nothing outside depends on it */
    uint64_t path;      /* hash of the states, and Python frames, from the outermost element to this one */
    uint32_t words;     /* end of its words: from the previous element's, what the way outwards from it was read from */
    uint32_t evals;     /* Python evaluation loops among the elements up to this one */
    uint32_t frame;     /* of the ledger; RULE_NO_FRAME: it has none */
    bool needs_rbp;
    /* Once it is `placed` in the tree: */
    uint32_t frames; /* end of its frames */
    uint32_t place;  /* of the innermost of them; TREE_NONE: there is no room for it */
};

/* A remembered evaluation loop: it is `element`, and its frames, innermost first, end at `python`. */
struct eval {
    uintptr_t anchor;
    uint32_t element, python;
};

/* What has been found out about the elements of a memo and the thread's present stack. */
enum memo_found {
    MEMO_WORDS = 1,  /* their words hold */
    MEMO_PYTHON = 2, /* and so do their Python frames, as far as loops further in are those that are remembered */
};

struct memo {
    uint32_t count;  /* of elements */
    uint32_t placed; /* so many of them have been looked up in the tree */
    uint32_t found;  /* enum memo_found: about all of them, while one stack is looked up */
    uint32_t depth, words_room, frames_room, evals_room, python_room;
    struct element *elements;
    struct word *words;
    uint32_t *frames;
    struct eval *evals;
    struct python_frame *python;
    /* Of another stack than the thread's own: */
    struct region extent; /* from the deepest slot to behind the outermost word */
    uint64_t used;        /* when it was last come back to */
};

/* The ends of what belongs to the first k elements. */
static inline uint32_t memo_words(const struct memo *self, uint32_t k) { return k ? self->elements[k - 1].words : 0; }
static inline uint32_t memo_evals(const struct memo *self, uint32_t k) { return k ? self->elements[k - 1].evals : 0; }

static inline bool memo_same_state(const struct element *element, const struct state *state) {
    return element->state.slot == state->slot && element->state.place == state->place &&
           (!element->needs_rbp || element->state.rbp == state->rbp);
}

/* Leaves the outermost `count` elements. */
static inline void memo_cut(struct memo *self, uint32_t count) {
    self->count = count;
    if (self->placed > count) self->placed = count;
}

/* Whether the first `count` elements are as they were. Of those that are not, and all that are further in than such,
 * some are forgotten. `inner`: the anchor of the next loop further in on the present stack, or 0. `own`: all words can
 * be read, because it is the thread's own stack. */
bool memo_holds(struct memo *self, uint32_t count, uintptr_t inner, bool own);

/* A new stack is looked up, or this one has been: nothing is known of it. What was found out with the leaves is good
 * for unwinding, too; a signal handler that looks up its own stack in between has the same frames outside of its own.
 */
static inline void memo_begin(struct memo *self) { self->found = 0; }

/* Remembers steps inside of what is remembered. `seed` is the path of no stack: paths with different seeds differ.
 * False: the innermost steps were left out, for want of room. */
bool memo_push(struct memo *self, const struct steps *steps, uint64_t seed);

/* The stack (tree.h) that ends with the innermost element, which is the thread's present one. The tree is only asked
 * for it here, because most stacks are known by their path. */
uint32_t memo_stack(struct memo *self);

#pragma GCC visibility pop

#endif
