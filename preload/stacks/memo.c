/* memo.c — see memo.h. */
#include "preload/stacks/memo.h"

#include <string.h>

#include "preload/stacks/cfi.h"
#include "preload/ledger/ledger.h"
#include "preload/base/capacity.h"
#include "preload/stacks/rule.h"
#include "preload/stacks/tree.h"

enum {
    WORDS_A_FRAME = 3,
    AT_ONCE = 256, /* capacity is made for at most this many steps at once */
};

/* --- is the stack unchanged? --- */

/* How many of the first `count` elements, from the outermost inwards, are unchanged, which means that all their words
 * have their old values. The caller makes sure that all words can be read. */
static uint32_t words_hold(const struct memo *self, uint32_t count) {
    const struct word *word = self->words, *end = word + memo_words(self, count);
    for (; word + 4 <= end; word += 4)
        if (unlikely((*word[0].at ^ word[0].value) | (*word[1].at ^ word[1].value) | (*word[2].at ^ word[2].value) |
                     (*word[3].at ^ word[3].value)))
            break;
    while (word < end && *word->at == word->value) word++;
    if (likely(word >= end)) return count;
    uint32_t k = count, index = (uint32_t)(word - self->words);
    while (memo_words(self, k - 1) > index) k--;
    return k - 1;
}

/* As words_hold, for a stack that is not the thread's own, and may be partly gone. The check goes from the inside
 * outwards, and stops at the first element that changed. A word is read only when all inner words are unchanged: then
 * it lies in a frame to which the program will return. */
static uint32_t words_hold_from_inside(const struct memo *self, uint32_t count) {
    for (uint32_t k = count; k; k--) {
        const struct word *word = self->words + memo_words(self, k - 1), *end = self->words + memo_words(self, k);
        while (word < end && *word->at == word->value) word++;
        if (unlikely(word < end)) return k - 1;
    }
    return count;
}

/* Returns the first anchor among the loops index + 1 to end - 1, which lie further in than loop `index`. If none of
 * these loops has an anchor, returns `inner`. */
static uintptr_t next_anchor(const struct memo *self, uint32_t index, uint32_t end, uintptr_t inner) {
    while (++index < end)
        if (self->evals[index].anchor) return self->evals[index].anchor;
    return inner;
}

/* Compares the Python frames of the loops [first, end), whose words were checked before. Returns how many of the first
 * `count` elements are unchanged. */
static uint32_t python_holds(const struct memo *self, uint32_t count, uint32_t first, uint32_t end, uintptr_t inner) {
    uint32_t python = first ? self->evals[first - 1].python : 0;
    for (uint32_t i = first; i < end; i++) {
        const struct eval *eval = &self->evals[i];
        uintptr_t next = next_anchor(self, i, end, inner);
        if (unlikely(!python_same(next, eval->anchor, self->python + python, eval->python - python)))
            return eval->element;
        python = eval->python;
    }
    return count;
}

/* Returns the index of the innermost loop that has an anchor, among the first `evals` loops; 0 if none has. A second
 * check in a look-up begins at this loop. It compares this loop's frames again, because they depend on the next loop
 * further in, which lies beyond the first `evals` and may be another one than in the first check. */
static uint32_t first_in_doubt(const struct memo *self, uint32_t evals) {
    uint32_t first = evals - 1;
    while (first && !self->evals[first].anchor) first--;
    return first;
}

/* `found` says what an earlier check in the same look-up found unchanged. This is not checked again, except the frames
 * of the innermost loop. */
bool memo_holds(struct memo *self, uint32_t count, uintptr_t inner, bool own) {
    uint32_t good = count;
    if (likely(!(self->found & MEMO_WORDS))) {
        good = likely(own) ? words_hold(self, count) : words_hold_from_inside(self, count);
        if (own || good == count) self->found |= MEMO_WORDS;
    }
    uint32_t evals = memo_evals(self, count);
    if (good == count && evals) {
        good = python_holds(self, count, self->found & MEMO_PYTHON ? first_in_doubt(self, evals) : 0, evals, inner);
        self->found |= MEMO_PYTHON;
    }
    if (likely(good == count)) return true;
    memo_cut(self, good);
    return false;
}

/* --- adding steps to the memo --- */

/* Hashes three words into one: mixes both halves of a product, as wyhash does. */
static inline uint64_t memo_mixed(uint64_t h, uint64_t a, uint64_t b) {
    __uint128_t product = (__uint128_t)(h ^ a) * (b ^ 0x9E3779B97F4A7C15u);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Adds `loop`, a Python evaluation loop in the element `inside`, to self->evals[index], and its frames to self->python.
 * Returns `path`, the hash of the element and all outer ones, extended by the hash of the loop's frames. So a leaf
 * (leaf.h) does not match when the loop runs other frames. The hash contains addresses of code objects: they stay alive
 * as long as a stack with that path is known (python.h). */
static uint64_t push_loop(struct memo *self, uint32_t inside, uint32_t index, uint64_t path, const struct loop *loop,
                          const struct python_frame *found) {
    uint32_t end = index ? self->evals[index - 1].python : 0;
    const struct python_frame *from = found + loop->first;
    for (uint32_t i = 0; i < loop->count; i++) {
        self->python[end++] = from[i];
        path = memo_mixed(path, from[i].code, from[i].instruction);
    }
    self->evals[index] = (struct eval){loop->anchor, inside, end};
    return memo_mixed(path, loop->anchor, loop->count);
}

/* Adds the words of a step with a rare kind of rule, or of the outermost step. */
__attribute__((noinline)) static struct word *add_odd_words(struct word *word, const struct step *step,
                                                            const struct state *outer, const uint64_t *end) {
    uintptr_t context = step->slot + sizeof(uint64_t);
    const uint64_t *address_at = outer->slot ? (const uint64_t *)outer->slot : end;
    switch (rule_kind(step->how)) {
    case RULE_SIGNAL:
        if (!outer->slot) break;
        *word++ = (struct word){(const uint64_t *)(context + CFI_SIGNAL_SP), outer->slot + sizeof(uint64_t)};
        *word++ = (struct word){(const uint64_t *)(context + CFI_SIGNAL_PC), outer->code & ~RULE_INTERRUPTED};
        break;
    case RULE_BP_DEREF:
        if (!address_at) break;
        *word++ =
            (struct word){(const uint64_t *)(step->rbp + (uintptr_t)rule_cfa(step->how)), (uintptr_t)(address_at + 1)};
        *word++ = (struct word){address_at, outer->code};
        break;
    default:
        if (address_at) *word++ = (struct word){address_at, outer->code};
    }
    return word;
}

/* Where the caller's rbp is saved; NULL: the register still holds it. */
static inline const uint64_t *saved_rbp(const struct step *step, uintptr_t outer_slot) {
    int32_t bp = rule_bp(step->code);
    if (unlikely(rule_kind(step->how) == RULE_SIGNAL))
        return (const uint64_t *)(step->slot + sizeof(uint64_t) + CFI_SIGNAL_BP);
    if (bp == RULE_NO_BP) return NULL;
    uintptr_t base = step->how & RULE_BP_AT_BP ? step->rbp : outer_slot + sizeof(uint64_t);
    return (const uint64_t *)(base + (uintptr_t)((int64_t)bp * 8));
}

/* Adds from->steps[first, end). That array has the innermost step first, and the memo has the outermost element first.
 * A word whose value gives the address of another word of its element is added before that other word. */
static void memo_push_steps(struct memo *self, const struct steps *from, uint32_t first, uint32_t end, uint32_t *loops,
                            uint64_t seed) {
    struct element *element = self->elements + self->count;
    struct state outer = {0, 0, 0};
    struct word *word = self->words;
    uint64_t path = (seed + 1) * 0xD6E8FEB86659FD93u;
    uint32_t evals = 0;
    bool needs = false;
    if (self->count) {
        outer = element[-1].state;
        word += element[-1].words;
        path = element[-1].path;
        evals = element[-1].evals;
        needs = element[-1].needs_rbp;
    }
    for (const struct step *step = from->steps + end, *last = from->steps + first; step-- > last; element++) {
        uint32_t kind = rule_kind(step->how);
        if (likely((kind == RULE_SP || kind == RULE_BP) && outer.slot))
            *word++ = (struct word){(const uint64_t *)outer.slot, outer.code};
        else
            word = add_odd_words(word, step, &(struct state){outer.slot, outer.code, outer.rbp}, from->end);
        if (needs) {
            const uint64_t *saved = saved_rbp(step, outer.slot);
            if (saved) *word++ = (struct word){saved, outer.rbp};
            needs = !saved;
        }
        needs |= (step->how & RULE_NEEDS_BP) != 0;
        outer = (struct state){step->slot, rule_code(step->code), needs ? step->rbp : 0};
        path = memo_mixed(path, outer.slot, outer.code);
        if (needs) path = memo_mixed(path, outer.rbp, 0);
        if (unlikely(step->how & RULE_EVAL)) {
            uint32_t inside = (uint32_t)(element - self->elements);
            path = push_loop(self, inside, evals++, path, &from->loops[--*loops], from->python);
        }
        element->state = outer;
        element->path = path;
        element->words = (uint32_t)(word - self->words);
        element->evals = evals;
        element->frame = step->frame;
        element->needs_rbp = needs;
    }
    self->count += end - first;
}

/* Makes capacity for `more` steps. */
static bool memo_make_capacity(struct memo *self, const struct steps *from, uint32_t more) {
    uint32_t evals = memo_evals(self, self->count), python = evals ? self->evals[evals - 1].python : 0;
    return CAPACITY_FOR(self, elements, depth, self->count + more) &&
           CAPACITY_FOR(self, words, words_capacity, memo_words(self, self->count) + WORDS_A_FRAME * more) &&
           CAPACITY_FOR(self, evals, evals_capacity, evals + from->loop_count) &&
           CAPACITY_FOR(self, python, python_capacity, python + from->python_count + PYTHON_AHEAD);
}

bool memo_push(struct memo *self, const struct steps *steps, uint64_t seed) {
    uint32_t loops = steps->loop_count;
    for (uint32_t left = steps->count, more; left; left -= more) {
        more = left < AT_ONCE ? left : AT_ONCE;
        if (!memo_make_capacity(self, steps, more)) return false;
        memo_push_steps(self, steps, left - more, left, &loops, seed);
    }
    return true;
}

/* --- finding the stack in the tree --- */

/* Adds the frame of an element to the list. If the frame is an evaluation loop that runs Python frames, adds the Python
 * frames in its place. Returns the new end of the list. */
static uint32_t add_frames(const struct memo *self, const struct element *element, uint32_t evals_before,
                           uint32_t end) {
    uint32_t python = 0, first = 0;
    if (element->evals != evals_before) {
        python = self->evals[evals_before].python;
        first = evals_before ? self->evals[evals_before - 1].python : 0;
    }
    if (first == python) self->frames[end++] = element->frame;
    while (python > first) self->frames[end++] = python_frame_record(&self->python[--python]);
    return end;
}

static bool memo_make_capacity_for_frames(struct memo *self, uint32_t frames) {
    uint32_t evals = memo_evals(self, self->count), evals_placed = memo_evals(self, self->placed);
    uint32_t python = evals ? self->evals[evals - 1].python : 0;
    uint32_t python_placed = evals_placed ? self->evals[evals_placed - 1].python : 0;
    return CAPACITY_FOR(self, frames, frames_capacity, frames + self->count - self->placed + python - python_placed);
}

/* Lists the frames of the elements that have no place in the tree yet. Returns where the list ends: at the first frame
 * without a record in the ledger, or behind the last frame. */
static uint32_t list_frames(struct memo *self, const struct element *outer) {
    uint32_t end = outer->frames, evals = outer->evals;
    for (uint32_t i = self->placed; i < self->count; i++) {
        struct element *element = &self->elements[i];
        element->frames = end = add_frames(self, element, evals, end);
        evals = element->evals;
    }
    for (uint32_t i = outer->frames; i < end; i++)
        if (unlikely(self->frames[i] == RULE_NO_FRAME)) return i;
    return end;
}

/* Finds places in the tree for the elements that have none yet. */
static void place_all(struct memo *self) {
    static const struct element outermost = {.place = TREE_ROOT};
    const struct element *outer = self->placed ? &self->elements[self->placed - 1] : &outermost;
    bool has_capacity = memo_make_capacity_for_frames(self, outer->frames);
    uint32_t place = has_capacity ? outer->place : TREE_NONE, i = outer->frames;
    uint32_t end = has_capacity ? list_frames(self, outer) : i;
    for (; self->placed < self->count; self->placed++) {
        struct element *element = &self->elements[self->placed];
        if (!has_capacity) element->frames = i;
        for (; i < element->frames && place != TREE_NONE; i++)
            place = i < end ? tree_step(place, self->frames + i, end - i) : TREE_NONE;
        i = element->frames;
        element->place = place;
    }
}

/* Call it if there is no memory for this stack in the tree. Returns the nearest outer stack that is in the tree. Events
 * of this stack are counted at that outer stack. */
__attribute__((noinline)) static uint32_t known_outer(const struct memo *self) {
    uint32_t count = self->count, place = TREE_ROOT, stack;
    ledger_lost(SNAP_LOST_STACKS);
    while (count && self->elements[count - 1].place == TREE_NONE) count--;
    if (count) place = self->elements[count - 1].place;
    while ((stack = tree_stack_known(place)) == TREE_NONE) place = tree_outer(place);
    return stack;
}

uint32_t memo_stack(struct memo *self) {
    if (!self->count) return TREE_ROOT;
    place_all(self);
    uint32_t place = self->elements[self->count - 1].place;
    uint32_t stack = place == TREE_NONE ? TREE_NONE : tree_stack(place);
    return likely(stack != TREE_NONE) ? stack : known_outer(self);
}
