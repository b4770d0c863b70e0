/* unwind.c — see unwind.h. */
#include "preload/stacks/unwind.h"

#include "preload/stacks/cfi.h"
#include "preload/base/capacity.h"
#include "preload/stacks/rule.h"

enum { LARGEST_LOOP = 1 << 20 };

extern void *__libc_stack_end;

/* --- one step outwards --- */

/* Steps from a signal frame to the state that the signal interrupted. */
static enum outcome out_of_signal(struct unwound *self, struct own_stack *own, struct view *view, struct state *state) {
    uintptr_t slot = state->slot, context = slot + sizeof(uint64_t);
    if (!self->handler) self->handler = slot;
    if (!view_word(view, context, context + CFI_SIGNAL_PC)) return BROKEN;
    *state = (struct state){*(const uint64_t *)(context + CFI_SIGNAL_SP) - sizeof(uint64_t),
                            *(const uint64_t *)(context + CFI_SIGNAL_PC) | RULE_INTERRUPTED,
                            *(const uint64_t *)(context + CFI_SIGNAL_BP)};
    if (view_word(view, slot + 1, state->slot)) return GOES_ON;
    if (!own_stack_has(own, state->slot)) return BROKEN; /* the interrupted code ran on a stack that is not known */
    *view = view_of_own(own, state->slot);
    return GOES_ON;
}

/* Steps to the state of the caller. The return address lies just below the CFA. */
static inline enum outcome out_of_frame(struct steps *self, struct view *view, const struct rule *rule, uintptr_t cfa,
                                        struct state *state) {
    uintptr_t slot = cfa - sizeof(uint64_t);
    const uint64_t *address_at = view_word(view, state->slot + 1, slot);
    if (unlikely(!address_at)) return BROKEN;
    uint64_t code = *address_at;
    if (unlikely(code - 1 >= RULE_INTERRUPTED - 1)) {
        self->end = address_at;
        return code ? BROKEN : ENDED;
    }
    int32_t bp = rule_bp(rule->code);
    if (bp != RULE_NO_BP) {
        uintptr_t base = unlikely(rule->how & RULE_BP_AT_BP) ? state->rbp : cfa;
        const uint64_t *rbp_at = view_word(view, state->slot, base + (uintptr_t)((int64_t)bp * 8));
        if (unlikely(!rbp_at)) return BROKEN;
        state->rbp = *rbp_at;
    }
    state->slot = slot;
    state->code = code;
    return GOES_ON;
}

/* Does a step whose rule is of a rare kind. */
__attribute__((noinline)) static enum outcome step_out_oddly(struct unwound *self, struct own_stack *own,
                                                             struct view *view, const struct rule *rule,
                                                             struct state *state) {
    const uint64_t *cfa_at;
    switch (rule_kind(rule->how)) {
    case RULE_BP_DEREF:
        cfa_at = view_word(view, state->slot, state->rbp + (uintptr_t)rule_cfa(rule->how));
        return cfa_at ? out_of_frame(&self->steps, view, rule, *cfa_at, state) : BROKEN;
    case RULE_SIGNAL:
        return out_of_signal(self, own, view, state);
    case RULE_END:
        return ENDED;
    default: /* the loader's entry has no rule and no caller, so the stack ends there */
        return state->slot + sizeof(uint64_t) == (uintptr_t)__libc_stack_end ? ENDED : UNKNOWN;
    }
}

static inline enum outcome step_out(struct unwound *self, struct own_stack *own, struct view *view, struct step *step,
                                    struct state *state) {
    struct rule rule = rule_of(state->code);
    *step = (struct step){state->slot, state->rbp, rule.code, rule.how, rule.frame};
    enum rule_kind kind = rule_kind(rule.how);
    if (unlikely(kind != RULE_SP && kind != RULE_BP)) {
        struct state odd = *state; /* a copy, so that the state itself can stay in registers */
        enum outcome outcome = step_out_oddly(self, own, view, &(struct rule){rule.code, rule.how, rule.frame}, &odd);
        *state = odd;
        return outcome;
    }
    uintptr_t base = kind == RULE_SP ? state->slot + sizeof(uint64_t) : state->rbp;
    return out_of_frame(&self->steps, view, &rule, base + (uintptr_t)rule_cfa(rule.how), state);
}

/* --- frames of Python's evaluation loops --- */

/* Finds the frames of the loop whose native frame is [slot, cfa). */
static bool find_loop(struct steps *self, struct python_walk *walk, uintptr_t slot, uintptr_t cfa) {
    struct python_walk before = *walk;
    struct loop loop = {.first = self->python_count};
    uint32_t capacity = self->python_capacity - loop.first;
    size_t count = python_frames(walk, slot, cfa, &loop.anchor, self->python + loop.first, capacity);
    if (count > capacity) {
        if (count > LARGEST_LOOP || !CAPACITY_FOR(self, python, python_capacity, loop.first + (uint32_t)count))
            return false;
        *walk = before;
        python_frames(walk, slot, cfa, &loop.anchor, self->python + loop.first, count);
    }
    if (!CAPACITY_FOR(self, loops, loop_capacity, self->loop_count + 1)) return false;
    loop.count = (uint32_t)count;
    self->python_count += loop.count;
    self->loops[self->loop_count++] = loop;
    return true;
}

/* For a step that may be an evaluation loop: finds out whether it is one, and finds its frames. False: there is no
 * memory. */
__attribute__((noinline)) static bool find_python(struct steps *self, struct step *step, uintptr_t cfa,
                                                  struct python_walk *walk) {
    uint64_t code = rule_code(step->code);
    if (code >= RULE_INTERRUPTED) return true;
    if (unlikely(!(step->how & RULE_EVAL_KNOWN))) {
        step->how |= RULE_EVAL_KNOWN | (python_is_eval(code, step->slot, cfa) ? RULE_EVAL : 0);
        rule_mark(code, step->how & (RULE_EVAL_KNOWN | RULE_EVAL));
    }
    return !(step->how & RULE_EVAL) || find_loop(self, walk, step->slot, cfa);
}

static inline bool may_be_python(uint32_t how) { return (how & (RULE_EVAL_KNOWN | RULE_EVAL)) != RULE_EVAL_KNOWN; }

/* --- unwinding up to a remembered frame --- */

/* The anchor of the outermost loop found so far that has an anchor; 0: no loop has an anchor. */
static uintptr_t last_anchor(const struct steps *self) {
    for (uint32_t i = self->loop_count; i-- > 0;)
        if (self->loops[i].anchor) return self->loops[i].anchor;
    return 0;
}

enum outcome unwind(struct unwound *self, struct memo *memo, struct view *view, struct own_stack *own,
                    const struct caller *caller) {
    struct steps *steps = &self->steps;
    struct state state = {caller->slot, caller->address, caller->rbp};
    struct python_walk walk = {0};
    bool on_own = view->own;
    /* The elements that the stack may still join. */
    const struct element *elements = memo->elements, *end = elements + memo->count;
    enum outcome outcome = GOES_ON;
    steps->count = steps->loop_count = steps->python_count = 0;
    steps->end = NULL;
    self->handler = 0;
    for (;;) {
        while (end != elements && end[-1].state.slot < state.slot) end--;
        if (end != elements && end[-1].state.slot == state.slot && memo_same_state(&end[-1], &state)) {
            if (memo_holds(memo, (uint32_t)(end - elements), last_anchor(steps), on_own)) break;
            end = elements + memo->count;
        }
        if (unlikely(steps->count == steps->capacity) && !CAPACITY_FOR(steps, steps, capacity, steps->count + 1)) {
            outcome = BROKEN;
            break;
        }
        struct step *step = &steps->steps[steps->count++];
        outcome = step_out(self, own, view, step, &state);
        if (unlikely(may_be_python(step->how)) && outcome == GOES_ON &&
            !find_python(steps, step, state.slot + sizeof(uint64_t), &walk))
            outcome = BROKEN;
        if (unlikely(outcome != GOES_ON)) {
            step->how &= ~(uint32_t)RULE_EVAL; /* the frames of its loop were not read */
            break;
        }
    }
    memo_cut(memo, outcome == GOES_ON ? (uint32_t)(end - elements) : 0);
    return outcome;
}
