/* stack.c — see stack.h.
 *
 * A thread remembers its last stack as a list of elements, outermost first: the state of each frame, and the words of
 * memory that the way from it to the next outer one was read from. The next stack is unwound from its inner end until
 * a state is met that is remembered; if the words from there outwards are what they were, so is all the rest.
 * Stacks that were seen before, and need no unwinding at all, are in the leaf cache.
 *
 * Of the last other stacks that the thread ran on (a coroutine's, a signal handler's) it remembers the same, with more
 * care: they may be gone, or be another coroutine's. */
#include "stack.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "account.h"
#include "arena.h"
#include "cfi.h"
#include "fold.h"
#include "ledger.h"
#include "os.h"
#include "python.h"
#include "rule.h"
#include "site.h"
#include "tree.h"

enum {
    LEAF_BITS = 8, /* sets of leaves */
    LEAF_WAYS = 2,
    LEAVES = LEAF_WAYS << LEAF_BITS,
    LEAF_WORDS = 7,
    HOP_BITS = 7,
    FIRST_DEPTH = 128,
    LAST_DEPTH = 1 << 20, /* of what a thread remembers: 300,000 frames or more; what is further in is left out */
    WORDS_A_FRAME = 3,
    LARGEST_STACK = 64 << 20,
    OTHERS = 16,          /* stacks besides its own that a thread remembers */
    FURTHER = 1 << 20,    /* how far beyond what is known of another stack a word may lie */
    DEEPER = 2 * OS_PAGE, /* how far below the deepest slot of another stack a slot is taken to be on it, too */
};

/* The state of a frame: execution goes on at `place` (an address, or RULE_INTERRUPTED and an address), with rsp just
 * above `slot`, and with this rbp. */
struct state {
    uintptr_t slot;
    uint64_t place;
    uintptr_t rbp;
};

/* A word of memory and what it held. */
struct word {
    const uint64_t *at;
    uint64_t value;
};

/* A frame on the way outwards: where the next outer state was read from. */
struct step {
    struct state state;
    uint32_t how, frame;
    uintptr_t cfa;
    const uint64_t *address_at, *cfa_at, *rbp_at; /* NULL: not read from memory */
    /* Of a Python evaluation loop: its frames, innermost first, from found[python] on. */
    uintptr_t anchor;
    uint32_t python, python_count;
    bool is_eval;
};

struct element {
    struct state state; /* rbp is 0 when nothing outside depends on it */
    uint64_t path;      /* hash of the states, and Python frames, from the outermost element to this one */
    uint32_t words;     /* end of its words: from the previous element's, what the way outwards from it was read from */
    uint32_t frames;    /* end of its frames */
    uint32_t evals;     /* Python evaluation loops among the elements up to this one */
    uint32_t node;      /* the stack up to the last cut, and where the frames since then begin */
    uint32_t since;
    bool needs_rbp;
};
enum { FULL = -1 }; /* `since` of a stack whose inner part has no room in the tree */

/* A stack whose innermost part is known: if `value` is what stands at `offset` from the slot, and element `join` has
 * the given path, and its words hold, then this is the site. */
struct leaf {
    struct state state;
    uint64_t path;
    uint32_t site;
    int32_t join; /* -1: the words reach to the outermost frame */
    uint64_t values[LEAF_WORDS];
    uint32_t offsets[LEAF_WORDS];
    uint32_t any_rbp; /* rbp does not matter */
};
_Static_assert(sizeof(struct leaf) == 128, "two cache lines");

/* How far it is from the slot of a place to that of its caller; 0 when that depends on more than rsp. */
struct hop {
    uintptr_t address, distance;
};

/* A remembered evaluation loop: it is `element`, and its frames, innermost first, end at `python`. */
struct eval {
    uintptr_t anchor;
    uint32_t element, python;
};

struct region {
    uintptr_t low, high;
};

/* What is remembered of a stack. */
struct memory {
    uint32_t count; /* of elements */
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

struct stack {
    struct region own;    /* what is known to be readable of the thread's own stack */
    uintptr_t busy;       /* slot of who is at work here; 0: nobody */
    struct memory *other; /* of the other stack that the last allocation was on; NULL: it was on the thread's own */
    uint32_t generation;
    uint32_t unmappings;  /* when `looked` was */
    struct region looked; /* what could be read then of the stack of `other` */
    struct memory memory; /* of the thread's own stack */
    struct memory *others;
    uint64_t clock;     /* for memory.used */
    uintptr_t hole;     /* a page below the thread's own stack that could not be read; 0: none is known */
    struct step *steps; /* of the present stack, innermost first, and their Python frames */
    struct python_frame *found;
    uint32_t steps_room, found_room;
    uintptr_t handler; /* of the last stack that was unwound: the slot of the innermost signal frame; 0: none was met */
    bool complete;     /* it was unwound to its outermost frame */
    struct stack *spare;            /* for a signal handler that interrupts the work here */
    struct leaf *leaves;            /* NULL in a spare one: it does not remember anything */
    struct hop hops[1 << HOP_BITS]; /* by hash of the address: what is asked of rules with each stack */
};

uint32_t stack_unmappings;

extern void *__libc_stack_end;

/* --- memory --- */

/* Room for `need` items of an array, kept over growth; the memory before is lost, which at most doubles the use. */
static bool make_room(void *items, uint32_t *room, uint32_t need, size_t each) {
    if (likely(need <= *room)) return true;
    uint32_t larger = *room ? *room : FIRST_DEPTH;
    while (larger < need && larger < LAST_DEPTH) larger *= 2;
    void *before = *(void **)items, *memory = larger < need ? NULL : arena_take(larger * each);
    if (!memory) return false;
    if (*room) memcpy(memory, before, *room * each);
    *(void **)items = memory;
    *room = larger;
    ledger_note_own_memory();
    return true;
}
#define MAKE_ROOM(self, name, size, need) make_room(&(self)->name, &(self)->size, need, sizeof *(self)->name)

static struct stack *new_stack(bool leaves) {
    struct stack *self = arena_take(sizeof *self);
    if (!self) return NULL;
    if (leaves) self->leaves = arena_take(LEAVES * sizeof *self->leaves);
    return self;
}

static void forget(struct stack *self) {
    self->memory.count = 0;
    for (int i = 0; self->others && i < OTHERS; i++) self->others[i].count = 0;
    for (int i = 0; self->leaves && i < LEAVES; i++) self->leaves[i].state.slot = 0;
    memset(self->hops, 0, sizeof self->hops);
}

/* --- how far a stack may be read --- */

enum { PAGES_AT_ONCE = 64, FEW_PAGES = 8 };

/* How many of the first pages can be read: asks the kernel to copy a byte of each. A few, and where it refuses to do
 * that for anybody (an old container's rules), one by one: for a signal set that it reads before it finds the request
 * invalid. */
static unsigned long readable(uintptr_t page, unsigned long count) {
    char bytes[PAGES_AT_ONCE];
    struct iovec local = {bytes, sizeof bytes}, remote[PAGES_AT_ONCE];
    if (count > FEW_PAGES) {
        for (unsigned long i = 0; i < count; i++) remote[i] = (struct iovec){(void *)(page + i * OS_PAGE), 1};
        long copied = os_call(SYS_process_vm_readv, os_pid(), &local, 1, remote, count, 0);
        if (copied != -EPERM && copied != -ENOSYS) return copied > 0 ? (unsigned long)copied : 0;
    }
    unsigned long good = 0;
    while (good < count && os_call(SYS_rt_sigprocmask, -1, page + good * OS_PAGE, 0, 8) == -EINVAL) good++;
    return good;
}

/* Whether the pages from `low` to `high` can all be read; sets *high to where they cannot. */
static void probe(uintptr_t low, uintptr_t *high) {
    for (uintptr_t page = low; page < *high;) {
        unsigned long left = (*high - page + OS_PAGE - 1) / OS_PAGE,
                      count = left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
        unsigned long good = readable(page, count);
        page += good * OS_PAGE;
        if (good < count) *high = page;
    }
}

static uintptr_t thread_pointer(void) {
    uintptr_t tcb;
    __asm__("movq %%fs:0, %0" : "=r"(tcb));
    return tcb;
}

static uintptr_t main_thread; /* its thread pointer */

__attribute__((constructor)) static void note_main_thread(void) { main_thread = thread_pointer(); }

/* The main thread's stack ends where the program found it; another thread's at its thread control block, which glibc
 * puts at the upper end. */
static uintptr_t own_end(uintptr_t slot) {
    uintptr_t tcb = thread_pointer(), end = (uintptr_t)__libc_stack_end;
    if (slot <= end && end - slot < LARGEST_STACK) return end + sizeof(uint64_t);
    return tcb != main_thread && slot < tcb && tcb - slot < LARGEST_STACK ? tcb : 0;
}

static bool is_within(const struct region *region, uintptr_t slot) {
    return slot - region->low < region->high - region->low;
}

/* Whether the slot lies on the thread's own stack, all of which up to its end can then be read, now and later. In a
 * sandbox nothing more can be asked: what is not known by then stays foreign. */
static bool is_own(struct stack *self, uintptr_t slot) {
    if (likely(is_within(&self->own, slot))) return true;
    uintptr_t end = slot < self->own.low && self->own.low - slot < LARGEST_STACK ? self->own.low : own_end(slot);
    uintptr_t low = slot & ~(uintptr_t)(OS_PAGE - 1), reached = end;
    if (!end || slot >= end || ledger_is_sealed()) return false;
    if (slot < self->hole && self->hole < end && !readable(self->hole, 1)) return false;
    probe(low, &reached);
    if (reached < end) {
        self->hole = reached;
        return false;
    }
    if (end != self->own.low) self->own.high = end;
    self->own.low = low;
    return true;
}

/* What may be read of the present stack, from the page of the slot on. That page can be read: it was written to just
 * now. Another stack than the thread's own is looked at as far as it is needed. */
struct view {
    uintptr_t low, high;
    bool own;
    bool ended; /* the stack was unwound to its end */
};

static struct view own_view(const struct stack *self, uintptr_t slot) {
    return (struct view){slot, self->own.high, true, false};
}

static struct view other_view(uintptr_t slot) {
    uintptr_t low = slot & ~(uintptr_t)(OS_PAGE - 1);
    return (struct view){low, low + OS_PAGE, false, false};
}

static void look_up_to(struct view *view, uintptr_t end) {
    uintptr_t high = os_round_up(end, OS_PAGE);
    if (high <= view->high || ledger_is_sealed()) return;
    probe(view->high, &high);
    view->high = high;
}

/* Whether the word at an address beyond what is known can be read, too. Twice as much is looked at each time. */
__attribute__((noinline)) static bool reaches(struct view *view, uintptr_t address) {
    if (view->own || address - view->high >= FURTHER || address - view->low >= LARGEST_STACK) return false;
    uintptr_t end = address + sizeof(uint64_t), twice = 2 * view->high - view->low;
    look_up_to(view, end > twice ? end : twice);
    return address < view->high;
}

/* --- one step outwards --- */

enum outcome {
    GOES_ON,
    ENDED,   /* this is the outermost frame */
    UNKNOWN, /* the caller cannot be found; it never can, from this state */
    BROKEN,  /* what was read makes no sense: not to be remembered */
};

/* Outer frames lie higher. */
static const uint64_t *word_at(struct view *view, uintptr_t above, uintptr_t address) {
    if (address < above || address % sizeof(uint64_t)) return NULL;
    return likely(address < view->high) || reaches(view, address) ? (const uint64_t *)address : NULL;
}

static enum outcome out_of_signal(struct stack *self, struct view *view, struct step *step, struct state *next) {
    uintptr_t context = step->state.slot + sizeof(uint64_t);
    if (!self->handler) self->handler = step->state.slot;
    if (!word_at(view, context, context + CFI_SIGNAL_PC)) return BROKEN;
    step->address_at = (const uint64_t *)(context + CFI_SIGNAL_PC);
    step->cfa_at = (const uint64_t *)(context + CFI_SIGNAL_SP);
    step->rbp_at = (const uint64_t *)(context + CFI_SIGNAL_BP);
    step->cfa = *step->cfa_at;
    *next = (struct state){step->cfa - sizeof(uint64_t), *step->address_at | RULE_INTERRUPTED, *step->rbp_at};
    if (word_at(view, step->state.slot + 1, next->slot)) return GOES_ON;
    if (!is_own(self, next->slot)) return BROKEN; /* from an alternate stack to one that is not known either */
    *view = own_view(self, next->slot);
    return GOES_ON;
}

static enum outcome step_out(struct stack *self, struct view *view, struct step *step, struct state *next) {
    const struct state *state = &step->state;
    struct rule rule = rule_of(state->place);
    step->how = rule.how;
    step->frame = rule.frame;
    step->address_at = step->cfa_at = step->rbp_at = NULL;
    switch (rule_kind(rule.how)) {
    case RULE_SP:
        step->cfa = state->slot + sizeof(uint64_t) + (uintptr_t)rule_cfa(rule.how);
        break;
    case RULE_BP:
        step->cfa = state->rbp + (uintptr_t)rule_cfa(rule.how);
        break;
    case RULE_BP_DEREF:
        step->cfa_at = word_at(view, state->slot, state->rbp + (uintptr_t)rule_cfa(rule.how));
        if (!step->cfa_at) return BROKEN;
        step->cfa = *step->cfa_at;
        break;
    case RULE_SIGNAL:
        return out_of_signal(self, view, step, next);
    case RULE_END:
        return ENDED;
    default: /* the loader's entry has no rule, nor anybody who called it: the stack begins there */
        return state->slot + sizeof(uint64_t) == (uintptr_t)__libc_stack_end ? ENDED : UNKNOWN;
    }
    next->slot = step->cfa - sizeof(uint64_t);
    step->address_at = word_at(view, state->slot + 1, next->slot);
    if (!step->address_at) return BROKEN;
    next->place = *step->address_at;
    next->rbp = state->rbp;
    if (!next->place) return ENDED;
    if (next->place >= RULE_INTERRUPTED) return BROKEN;
    if (rule_bp(rule.place) == RULE_NO_BP) return GOES_ON;
    uintptr_t base = rule.how & RULE_BP_AT_BP ? state->rbp : step->cfa;
    step->rbp_at = word_at(view, state->slot, base + (uintptr_t)((int64_t)rule_bp(rule.place) * 8));
    if (!step->rbp_at) return BROKEN;
    next->rbp = *step->rbp_at;
    return GOES_ON;
}

/* --- what is remembered --- */

static uint32_t words_before(const struct memory *self, uint32_t k) { return k ? self->elements[k - 1].words : 0; }

/* How many of the first `count` elements still are as they were: all their words hold. */
static uint32_t verified(const struct memory *self, uint32_t count) {
    const struct word *word = self->words, *end = word + words_before(self, count);
    for (; word + 4 <= end; word += 4)
        if (unlikely((*word[0].at ^ word[0].value) | (*word[1].at ^ word[1].value) | (*word[2].at ^ word[2].value) |
                     (*word[3].at ^ word[3].value)))
            break;
    while (word < end && *word->at == word->value) word++;
    if (likely(word >= end)) return count;
    uint32_t k = 0, index = (uint32_t)(word - self->words);
    while (self->elements[k].words <= index) k++;
    return k;
}

/* The same of another stack, all of which may not be there any more: each word is read only when those further in hold.
 * Then it is in a frame that the program will itself return from. The elements outside of the first one that does not
 * hold are not looked at. */
static uint32_t verified_from_inside(const struct memory *self, uint32_t count) {
    uint32_t k = count;
    for (; k; k--) {
        const struct word *word = self->words + words_before(self, k - 1), *end = self->words + words_before(self, k);
        while (word < end && *word->at == word->value) word++;
        if (unlikely(word < end)) return k - 1;
    }
    return count;
}

static uint32_t evals_before(const struct memory *self, uint32_t k) { return k ? self->elements[k - 1].evals : 0; }

/* The same of the Python frames, once the words hold. `inner`: the anchor of the next loop further in, or 0. */
static uint32_t python_verified(const struct memory *self, uint32_t count, uintptr_t inner) {
    uint32_t good = count;
    for (uint32_t i = evals_before(self, count); i-- > 0;) {
        const struct eval *eval = &self->evals[i];
        uint32_t first = i ? eval[-1].python : 0;
        if (unlikely(!python_same(inner, eval->anchor, self->python + first, eval->python - first)))
            good = eval->element;
        if (eval->anchor) inner = eval->anchor;
    }
    return good;
}

static bool same_state(const struct element *element, const struct state *state) {
    return element->state.slot == state->slot && element->state.place == state->place &&
           (!element->needs_rbp || element->state.rbp == state->rbp);
}

/* --- the tree --- */

static uint64_t mix(uint64_t h, uint64_t value) {
    h = (h ^ value) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 32;
}

/* Ends the segment behind the element's last frame. */
static void cut(const struct memory *self, struct element *element) {
    uint32_t node = tree_node(element->node, self->frames + element->since, element->frames - element->since);
    if (node == TREE_NONE) {
        element->since = (uint32_t)FULL;
    } else {
        element->node = node;
        element->since = element->frames;
    }
}

static void add_frame(struct memory *self, struct element *element, uint32_t frame) {
    if (frame == RULE_NO_FRAME) element->since = (uint32_t)FULL;
    if (element->since == (uint32_t)FULL) return;
    self->frames[element->frames++] = frame;
    if (tree_cuts_after(frame, element->frames - element->since)) cut(self, element);
}

/* The stack that ends with the element. */
static uint32_t node_of(const struct memory *self, const struct element *element) {
    struct element end = *element;
    if (end.since != (uint32_t)FULL && end.since != end.frames) cut(self, &end);
    if (end.since == (uint32_t)FULL) ledger_lost(SNAP_LOST_STACKS);
    return end.node;
}

/* --- remembering --- */

static bool uses_rbp(uint32_t how) {
    enum rule_kind kind = rule_kind(how);
    return kind == RULE_BP || kind == RULE_BP_DEREF || how & RULE_BP_AT_BP;
}

static void add_word(struct memory *self, struct element *element, const uint64_t *at, uint64_t value) {
    self->words[element->words++] = (struct word){at, value};
}

/* In place of the interpreter's own frame: the Python frames that it runs. They are part of the path: the same loop may
 * have run others when a leaf was filled that joins it. */
static void add_python(struct memory *self, struct element *element, const struct step *step,
                       const struct python_frame *found) {
    struct eval *eval = &self->evals[element->evals];
    uint32_t at = element->evals ? eval[-1].python : 0;
    for (uint32_t i = step->python_count; i-- > 0;) {
        uint32_t frame = python_frame_record(&found[i]);
        element->path = mix(element->path, frame);
        add_frame(self, element, frame);
    }
    memcpy(self->python + at, found, step->python_count * sizeof *self->python);
    *eval = (struct eval){step->anchor, self->count, at + step->python_count};
    element->evals++;
}

/* Room for one more element, whose step it is. */
static bool make_room_for(struct memory *self, const struct step *step) {
    const struct element *outer = self->count ? &self->elements[self->count - 1] : NULL;
    uint32_t words = outer ? outer->words : 0, frames = outer ? outer->frames : 0, evals = outer ? outer->evals : 0;
    uint32_t python = evals ? self->evals[evals - 1].python : 0;
    return MAKE_ROOM(self, elements, depth, self->count + 1) &&
           MAKE_ROOM(self, words, words_room, words + WORDS_A_FRAME) &&
           MAKE_ROOM(self, frames, frames_room, frames + 1 + step->python_count) &&
           MAKE_ROOM(self, evals, evals_room, evals + 1) &&
           MAKE_ROOM(self, python, python_room, python + step->python_count);
}

/* The element of a step, inside the elements that are there. Words that others are found by come first. */
static void push(struct memory *self, const struct step *step, const struct python_frame *found) {
    static const struct element outermost = {.node = TREE_ROOT};
    const struct element *outer = self->count ? &self->elements[self->count - 1] : NULL;
    struct element element = outer ? *outer : outermost;
    bool outer_needs = outer && outer->needs_rbp;
    element.needs_rbp = uses_rbp(step->how) || (!step->rbp_at && outer_needs);
    element.state = step->state;
    if (!element.needs_rbp) element.state.rbp = 0;
    element.path = mix(mix(mix(element.path, step->state.slot), step->state.place), element.state.rbp);
    if (step->cfa_at) add_word(self, &element, step->cfa_at, step->cfa);
    if (step->address_at)
        add_word(self, &element, step->address_at, outer ? outer->state.place & ~RULE_INTERRUPTED : 0);
    if (step->rbp_at && outer_needs) add_word(self, &element, step->rbp_at, outer->state.rbp);
    if (step->is_eval) add_python(self, &element, step, found + step->python);
    if (!step->is_eval || !step->python_count) add_frame(self, &element, step->frame);
    self->elements[self->count++] = element;
}

/* --- leaves --- */

#define INLINE inline __attribute__((always_inline))

static INLINE uint64_t upper_bits(uint64_t h, int bits) { return h * 0x9E3779B97F4A7C15u >> (64 - bits); }

static INLINE struct hop *hop_of(struct stack *self, uintptr_t address) {
    return &self->hops[upper_bits(address, HOP_BITS)];
}

__attribute__((noinline)) static const struct hop *find_hop(struct stack *self, uintptr_t address) {
    static const struct hop unknown;
    struct hop *hop = hop_of(self, address);
    uint32_t how = rule_how(address);
    if (rule_kind(how) == RULE_STALE) return &unknown; /* not yet */
    *hop = (struct hop){address, rule_kind(how) == RULE_SP ? (uintptr_t)rule_cfa(how) : 0};
    return hop;
}

/* The set that a stack belongs in, chosen by its three innermost return addresses. */
static INLINE struct leaf *leaves_of(struct stack *self, struct caller caller) {
    uint64_t h = caller.address ^ caller.slot << 1;
    uintptr_t slot = caller.slot, address = caller.address;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const struct hop *hop = hop_of(self, address);
        if (unlikely(hop->address != address)) hop = find_hop(self, address);
        slot += hop->distance;
        if (unlikely(!hop->distance || slot >= self->own.high)) break;
        address = *(const uint64_t *)slot;
        h = (h << 7 | h >> 57) ^ address;
    }
    return self->leaves + upper_bits(h, LEAF_BITS) * LEAF_WAYS;
}

/* Whether what lies outside a leaf's words is what it was. */
__attribute__((noinline)) static bool joins_leaf(const struct stack *self, const struct leaf *leaf) {
    const struct memory *memory = &self->memory;
    uint32_t join = (uint32_t)leaf->join;
    return join < memory->count && memory->elements[join].path == leaf->path &&
           verified(memory, join + 1) == join + 1 && python_verified(memory, join + 1, 0) == join + 1;
}

static INLINE bool leaf_holds(const struct stack *self, const struct leaf *leaf, struct caller caller) {
    if (leaf->state.slot != caller.slot || leaf->state.place != caller.address ||
        !(leaf->any_rbp || leaf->state.rbp == caller.rbp))
        return false;
    uint64_t differs = 0;
#pragma GCC unroll 7
    for (int i = 0; i < LEAF_WORDS; i++)
        differs |= *(const uint64_t *)(caller.slot + leaf->offsets[i]) ^ leaf->values[i];
    if (unlikely(differs)) return false;
    return leaf->join < 0 || joins_leaf(self, leaf);
}

/* As many of the innermost elements' words as a leaf takes; it joins the element before them. */
static void fill_leaf(const struct memory *self, struct leaf *leaf, const struct caller *caller, uint32_t site) {
    const struct element *top = &self->elements[self->count - 1];
    uint32_t k = self->count, end = top->words;
    while (k && end - words_before(self, k - 1) <= LEAF_WORDS &&
           self->elements[k - 1].evals == evals_before(self, k - 1))
        k--;
    uint32_t first = words_before(self, k), n = 0;
    if (k == self->count) return;
    leaf[1] = leaf[0];
    leaf->state.slot = 0;
    for (; first + n < end; n++) {
        const struct word *word = &self->words[first + n];
        uintptr_t offset = (uintptr_t)word->at - caller->slot;
        if (offset > INT32_MAX) return;
        leaf->offsets[n] = (uint32_t)offset;
        leaf->values[n] = word->value;
    }
    for (; n < LEAF_WORDS; n++) {
        leaf->offsets[n] = 0; /* the return address itself */
        leaf->values[n] = caller->address;
    }
    leaf->state = (struct state){caller->slot, caller->address, caller->rbp};
    leaf->any_rbp = !top->needs_rbp;
    leaf->join = (int32_t)k - 1;
    leaf->path = k ? self->elements[k - 1].path : 0;
    leaf->site = site;
}

/* --- the whole stack --- */

/* The Python frames of a step that is an evaluation loop. */
static bool find_python(struct stack *self, struct step *step, struct python_walk *walk, uint32_t *found) {
    if (unlikely(!(step->how & RULE_EVAL_KNOWN))) {
        bool is_eval = python_is_eval(step->state.place, step->state.slot, step->cfa);
        step->how |= RULE_EVAL_KNOWN | (is_eval ? RULE_EVAL : 0);
        rule_mark(step->state.place, step->how & (RULE_EVAL_KNOWN | RULE_EVAL));
    }
    step->is_eval = step->how & RULE_EVAL;
    if (likely(!step->is_eval)) return true;
    struct python_walk before = *walk;
    uint32_t room = self->found_room - *found;
    size_t count = python_frames(walk, step->state.slot, step->cfa, &step->anchor, self->found + *found, room);
    if (count > room) {
        if (count > LAST_DEPTH || !MAKE_ROOM(self, found, found_room, *found + (uint32_t)count)) return false;
        *walk = before;
        python_frames(walk, step->state.slot, step->cfa, &step->anchor, self->found + *found, count);
    }
    step->python = *found;
    step->python_count = (uint32_t)count;
    *found += (uint32_t)count;
    return true;
}

/* What has been found out about the elements that are remembered. */
struct check {
    uint32_t count; /* those that may still be joined */
    bool words_hold;
};

/* Whether the rest of the stack is what is remembered, given that the innermost of its elements is met. */
static bool joins(const struct memory *memory, struct check *check, bool own, uintptr_t inner) {
    uint32_t good = check->count;
    if (!check->words_hold) good = own ? verified(memory, good) : verified_from_inside(memory, good);
    check->words_hold = own || good == check->count;
    if (good == check->count) good = python_verified(memory, good, inner);
    if (good == check->count) return true;
    check->count = good;
    return false;
}

/* Unwinds to an element that is remembered and holds, or to the end; leaves only that element and those outside it.
 * Gives the number of steps. */
static uint32_t unwind(struct stack *self, struct memory *memory, struct view *view, const struct caller *caller,
                       enum outcome *outcome) {
    struct state state = {caller->slot, caller->address, caller->rbp};
    struct check check = {memory->count, false};
    struct python_walk walk = {0};
    bool own = view->own;
    uint32_t n = 0, found = 0;
    uintptr_t inner = 0; /* anchor of the last loop that was met */
    self->handler = 0;
    for (*outcome = GOES_ON; *outcome == GOES_ON;) {
        while (check.count && memory->elements[check.count - 1].state.slot < state.slot) check.count--;
        if (check.count && same_state(&memory->elements[check.count - 1], &state) && joins(memory, &check, own, inner))
            break;
        if (!MAKE_ROOM(self, steps, steps_room, n + 1)) {
            *outcome = BROKEN;
            break;
        }
        struct step *step = &self->steps[n++];
        *step = (struct step){.state = state};
        *outcome = step_out(self, view, step, &state);
        if (*outcome == GOES_ON && step->state.place < RULE_INTERRUPTED && !find_python(self, step, &walk, &found))
            *outcome = BROKEN;
        if (step->anchor) inner = step->anchor;
    }
    memory->count = *outcome == GOES_ON ? check.count : 0;
    return n;
}

/* Steps beyond what can be remembered are left out: the innermost ones. */
static uint32_t find(struct stack *self, struct memory *memory, struct view *view, const struct caller *caller) {
    enum outcome outcome;
    bool own = view->own;
    uint32_t n = unwind(self, memory, view, caller, &outcome);
    if (outcome == UNKNOWN || outcome == BROKEN) ledger_lost(SNAP_LOST_FRAMES);
    view->ended = outcome != GOES_ON;
    self->complete = outcome == ENDED;
    while (n && make_room_for(memory, &self->steps[n - 1])) push(memory, &self->steps[--n], self->found);
    if (n) ledger_lost(SNAP_LOST_STACKS);
    uint32_t node = memory->count ? node_of(memory, &memory->elements[memory->count - 1]) : TREE_ROOT;
    if (outcome == BROKEN || n || own != view->own) memory->count = 0;
    return node;
}

/* Nothing is remembered. */
static uint32_t find_anew(struct stack *self, struct view view, const struct caller *caller) {
    self->memory.count = 0;
    uint32_t node = find(self, &self->memory, &view, caller);
    self->memory.count = 0;
    return node;
}

static uint32_t find_own(struct stack *self, const struct caller *caller) {
    struct view view = own_view(self, caller->slot);
    self->other = NULL;
    return self->leaves ? find(self, &self->memory, &view, caller) : find_anew(self, view, caller);
}

/* --- other stacks than the thread's own --- */

/* What is remembered of the stack that the slot lies on, or seems to: nothing wrong comes of a mistake. */
static struct memory *recall(const struct stack *self, uintptr_t slot) {
    struct memory *found = NULL;
    for (int i = 0; self->others && i < OTHERS; i++) {
        struct memory *other = &self->others[i];
        struct region near = {other->extent.low - DEEPER, other->extent.high};
        if (is_within(&near, slot) && (!found || near.high < found->extent.high)) found = other;
    }
    return found;
}

static struct region extent_at_least(uintptr_t slot) {
    return (struct region){slot, os_round_up(slot + sizeof(uint64_t), OS_PAGE)};
}

static struct memory *forget_oldest(struct stack *self, uintptr_t slot) {
    struct memory *oldest = &self->others[0];
    for (int i = 1; i < OTHERS; i++)
        if (self->others[i].used < oldest->used) oldest = &self->others[i];
    oldest->count = 0;
    oldest->extent = extent_at_least(slot);
    return oldest;
}

/* The thread is on this stack now. What is remembered of it is good for something if all can be read from the present
 * slot up to its end. That is asked when the thread comes from another stack, and when anything was unmapped. It may
 * have been elsewhere without an allocation: that is why words are verified from inside, too. */
static struct view come_to(struct stack *self, struct memory *memory, uintptr_t slot) {
    struct view view = other_view(slot);
    uint32_t unmappings = __atomic_load_n(&stack_unmappings, __ATOMIC_ACQUIRE);
    bool stayed = memory == self->other && unmappings == self->unmappings && view.low >= self->looked.low &&
                  view.high <= self->looked.high;
    if (memory != self->other) memory->used = ++self->clock;
    self->other = memory;
    self->unmappings = unmappings;
    if (stayed && memory->count) view = (struct view){self->looked.low, self->looked.high, false, false};
    if (memory->count) look_up_to(&view, memory->extent.high);
    if (view.high < memory->extent.high) memory->count = 0;
    return view;
}

/* From the slot to behind the outermost word. No other stack that is remembered can be there still. */
static void note_extent(struct stack *self, struct memory *memory, uintptr_t slot) {
    struct region extent = extent_at_least(slot);
    for (uint32_t i = 0, n = words_before(memory, memory->count); i < n; i++) {
        uintptr_t end = (uintptr_t)(memory->words[i].at + 1);
        if (!i || end > extent.high) extent.high = end;
    }
    for (int i = 0; i < OTHERS; i++) {
        struct region *there = &self->others[i].extent;
        if (there->low < extent.high && extent.low < there->high) *there = (struct region){0, 0};
    }
    memory->extent = extent;
}

/* `memory`: what was recalled, or NULL. */
static uint32_t find_elsewhere(struct stack *self, struct memory *memory, const struct caller *caller) {
    if (!self->others && self->leaves) self->others = arena_take(OTHERS * sizeof *self->others);
    if (!self->others) return find_anew(self, other_view(caller->slot), caller);
    if (!memory) memory = forget_oldest(self, caller->slot);
    struct view view = come_to(self, memory, caller->slot);
    uint32_t node = find(self, memory, &view, caller);
    if (!view.own) self->looked = (struct region){view.low, view.high};
    if (view.ended) note_extent(self, memory, caller->slot);
    if (caller->slot < memory->extent.low) memory->extent.low = caller->slot;
    return node;
}

/* --- */

/* The thread's memory of its stacks, or NULL. */
static struct stack *stack_of_thread(void) {
    if (unlikely(account_self == &account_nobody)) account_thread_slot();
    struct thread *self = account_self;
    if (unlikely(self == &account_nobody)) return NULL;
    if (unlikely(!self->stack)) self->stack = new_stack(true);
    return self->stack && self->stack->leaves ? self->stack : NULL;
}

/* Whether a signal handler runs on an alternate stack, which may lie in an outer frame. */
static bool on_alternate_stack(void) {
    stack_t stack;
    return ledger_is_sealed() || os_call(SYS_sigaltstack, 0, &stack) < 0 || stack.ss_flags & SS_ONSTACK;
}

/* Whether the hook whose slot was `inner` is gone for good, seen from one with `slot`: a signal handler left it by
 * longjmp. Its frame was further in than ours, or it is ours now. */
static bool has_left(const struct stack *self, uintptr_t inner, uintptr_t slot) {
    const struct region *on = is_within(&self->own, inner) || !self->other ? &self->own : &self->other->extent;
    return slot >= inner && is_within(on, inner) && is_within(on, slot) && !on_alternate_stack();
}

bool stack_has_left(uintptr_t inner, uintptr_t slot) {
    const struct stack *self = account_self->stack;
    return self && has_left(self, inner, slot);
}

static bool is_at_work(const struct stack *self, uintptr_t slot) {
    return unlikely(self->busy) && !has_left(self, self->busy, slot);
}

bool stack_is_interrupted(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (const struct stack *self = account_self->stack; self; self = self->spare)
        if (is_at_work(self, here)) return true;
    return false;
}

static void begin_work(struct stack *self, uintptr_t slot) {
    self->busy = slot;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static void end_work(struct stack *self) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->busy = 0;
}

static uint32_t site_with(struct stack *self, const struct caller *caller) {
    uint32_t site, generation = __atomic_load_n(&site_generation, __ATOMIC_ACQUIRE);
    if (unlikely(self->busy)) forget(self); /* it was left in the middle */
    begin_work(self, caller->slot);
    if (unlikely(self->generation != generation)) {
        forget(self);
        self->generation = generation;
    }
    struct memory *other = is_within(&self->own, caller->slot) ? NULL : recall(self, caller->slot);
    bool own = !other && is_own(self, caller->slot);
    site = site_for_node(own ? find_own(self, caller) : find_elsewhere(self, other, caller), caller->address);
    if (own && self->leaves && self->memory.count) fill_leaf(&self->memory, leaves_of(self, *caller), caller, site);
    end_work(self);
    return site;
}

/* For want of anything better: the calling place alone. */
static uint32_t site_of_place(const struct caller *caller) {
    struct rule rule = rule_of(caller->address);
    ledger_lost(SNAP_LOST_FRAMES);
    uint32_t node = rule.frame == RULE_NO_FRAME ? TREE_NONE : tree_node(TREE_ROOT, &rule.frame, 1);
    return site_for_node(node == TREE_NONE ? TREE_ROOT : node, caller->address);
}

/* A thread late in its death has nothing to remember with: all such share one, one at a time. */
static uint32_t site_for_nobody(const struct caller *caller) {
    static struct stack *shared;
    static uint32_t taken;
    uint32_t idle = 0, me = ledger_head->pid;
    if (!__atomic_compare_exchange_n(&taken, &idle, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
        (idle == me || !__atomic_compare_exchange_n(&taken, &idle, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        return site_of_place(caller); /* taken, and not by a thread of a process that this one was forked from */
    if (!shared) shared = new_stack(false);
    uint32_t site;
    if (shared) {
        stack_inherit(shared);
        site = site_with(shared, caller);
    } else {
        site = site_of_place(caller);
    }
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return site;
}

/* The same, seen from a stack that another memory has just found to its end. Who is interrupted has a signal frame
 * further in, and is on this stack: another one may be left and come back to. */
static bool is_left_behind(const struct stack *self, const struct stack *by, uintptr_t slot) {
    bool same_stack = is_within(&by->own, self->busy) && is_within(&by->own, slot) && slot < self->busy;
    return self->busy && same_stack && (!by->handler || (is_within(&by->own, by->handler) && by->handler > self->busy));
}

/* Its thread is at work with each of them in front of `by`, or it was: then they are free again. */
static void free_those_left(struct stack *self, const struct stack *by, uintptr_t slot) {
    for (; self != by; self = self->spare)
        if (is_left_behind(self, by, slot)) {
            forget(self);
            self->busy = 0;
        }
}

enum { SPARES = 8 };

/* The stack is not in the leaf cache, or it cannot be asked. */
__attribute__((noinline)) static uint32_t site_in_full(uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    struct caller caller = {slot, address, rbp};
    struct stack *first = stack_of_thread(), *self = first;
    if (unlikely(__atomic_load_n(&fold_wanted, __ATOMIC_RELAXED))) fold_step(slot);
    if (!self) return site_for_nobody(&caller);
    for (int i = 0; self && is_at_work(self, slot); i++) {
        if (!self->spare && i < SPARES) self->spare = new_stack(false);
        self = self->spare;
    }
    if (!self) return site_of_place(&caller);
    uint32_t site = site_with(self, &caller);
    if (unlikely(self != first) && self->complete) free_those_left(first, self, slot);
    return site;
}

/* 0 when it is not there. */
static INLINE uint32_t site_in_leaves(struct stack *self, struct caller caller) {
    if (unlikely(!self || self->busy || caller.slot - self->own.low >= self->own.high - self->own.low ||
                 self->generation != __atomic_load_n(&site_generation, __ATOMIC_ACQUIRE)))
        return 0;
    begin_work(self, caller.slot);
    self->other = NULL;
    const struct leaf *leaf = leaves_of(self, caller);
    uint32_t site = leaf_holds(self, leaf, caller) ? leaf->site : leaf_holds(self, leaf + 1, caller) ? leaf[1].site : 0;
    end_work(self);
    return site;
}

#ifdef MEMSTOW_ORACLE /* the test build that compares every stack with libunwind's: tests/oracle */
void oracle_check(const struct caller *caller, uint32_t site);
#else
static inline void oracle_check(const struct caller *caller, uint32_t site) { (void)caller, (void)site; }
#endif

uint32_t stack_site(uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    uint32_t site = site_in_leaves(account_self->stack, (struct caller){slot, address, rbp});
    if (unlikely(!site)) site = site_in_full(slot, address, rbp);
    oracle_check(&(struct caller){slot, address, rbp}, site);
    return site;
}

void stack_inherit(struct stack *self) {
    self->own = (struct region){0, 0};
    self->busy = self->hole = 0;
    self->other = NULL;
    for (int i = 0; self->others && i < OTHERS; i++) self->others[i].extent = (struct region){0, 0};
    if (self->spare) stack_inherit(self->spare);
    forget(self);
}
