/* stack.c — see stack.h.
 *
 * A thread remembers its last stack (memo.h). The next stack is unwound from its inner end (unwind.h) until a frame has
 * a remembered state. If the words of this remembered frame and of all frames further out are unchanged, the rest of
 * the stack is unchanged, too. Stacks that were seen before and need no unwinding are in the leaf cache (leaf.h).
 *
 * The thread also remembers some stacks, other than its own, that it ran on (of coroutines or signal handlers). These
 * stacks are checked with more care: they may be gone, or belong to another coroutine now. */
#include "preload/stacks/stack.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include "preload/base/arena.h"
#include "preload/stacks/leaf.h"
#include "preload/ledger/ledger.h"
#include "preload/stacks/memo.h"
#include "preload/shared/os.h"
#include "preload/stacks/paths.h"
#include "preload/stacks/rule.h"
#include "preload/ledger/budget.h"
#include "preload/stacks/generation.h"
#include "preload/stacks/tree.h"
#include "preload/stacks/unwind.h"
#include "preload/stacks/view.h"
#include "preload/base/seal.h"

enum {
    OTHERS = 16, /* how many stacks, other than its own, a thread remembers */
    /* DEEPER: a slot at most this far below the deepest known slot of another stack counts as part of that stack. */
    DEEPER = 2 * OS_PAGE,
};

struct stack {
    struct own_stack own;
    uintptr_t busy;     /* the slot of the caller whose look-up uses this struct now; 0: none */
    struct memo *other; /* the other stack that the latest allocation was on; NULL: the thread's own */
    uint32_t generation;
    uint32_t unmappings;  /* stack_unmappings at the latest look-up on the stack of `other` */
    struct region looked; /* the readable part of the stack of `other`, at the latest look-up on that stack */
    struct memo memo;     /* the thread's own stack */
    struct memo *others;
    uint64_t clock; /* how often the thread came to a stack that is not its own, for memo.used */
    struct unwound unwound;
    bool complete;        /* the latest stack was unwound to its outermost frame */
    bool returned;        /* the latest stack was in `paths`: it was seen before, not long ago */
    struct stack *nested; /* the struct for a signal handler that interrupts a look-up in this one */
    bool remembers;       /* false: the struct has no leaves, because it is nested or shared, or memory was lacking */
    struct paths paths;
    struct leaves leaves;
};

uint32_t stack_unmappings;
uint32_t (*stack_site_of)(uint32_t stack, uintptr_t address);

static struct stack *of_nobody; /* stays NULL */
__thread struct stack **stack_self __attribute__((tls_model("initial-exec"))) = &of_nobody;

static struct stack *new_stack(bool remembers) {
    struct stack *self = arena_take(sizeof *self);
    if (self && remembers) self->remembers = leaf_begin(&self->leaves);
    return self;
}

static void stack_forget(struct stack *self) {
    memo_cut(&self->memo, 0);
    for (int i = 0; self->others && i < OTHERS; i++) memo_cut(&self->others[i], 0);
    leaf_forget(&self->leaves);
}

/* Takes over the memory of an earlier thread that had the same entry in the table of threads. */
static void stack_inherit(struct stack *self) {
    self->own = (struct own_stack){0};
    self->busy = 0;
    self->other = NULL;
    for (int i = 0; self->others && i < OTHERS; i++) self->others[i].extent = (struct region){0, 0};
    if (self->nested) stack_inherit(self->nested);
    stack_forget(self);
}

void stack_use(struct stack **memory) {
    if (memory && *memory) stack_inherit(*memory);
    stack_self = memory ? memory : &of_nobody;
}

/* Forgets data that may be half changed, because a signal handler left by longjmp in the middle of a change. */
__attribute__((noinline)) static void forget_half_done(struct stack *self) {
    stack_forget(self);
    paths_forget(&self->paths);
}

/* --- finding the site of a whole stack --- */

/* The site of the stack that `memo` holds. */
static uint32_t site_of_memo(struct stack *self, struct memo *memo, uintptr_t address) {
    uint64_t path = memo->count ? memo->elements[memo->count - 1].path : 0;
    uint32_t site = paths_find(&self->paths, path);
    self->returned = site != 0;
    if (site) return site;
    site = stack_site_of(memo_stack(memo), address);
    if (self->remembers && memo->count) paths_add(&self->paths, path, site);
    return site;
}

/* Unwinds the caller's stack, and returns its site. If there is not enough memory to remember all steps, the innermost
 * ones are left out. */
static uint32_t find_stack(struct stack *self, struct memo *memo, struct view *view, const struct caller *caller) {
    bool own = view->own;
    enum outcome outcome = unwind(&self->unwound, memo, view, &self->own, caller);
    if (outcome == UNKNOWN || outcome == BROKEN) ledger_lost(SNAP_LOST_FRAMES);
    view->ended = outcome != GOES_ON;
    self->complete = outcome == ENDED;
    bool whole = memo_push(memo, &self->unwound.steps, self->generation);
    if (!whole) ledger_lost(SNAP_LOST_STACKS);
    uint32_t site = site_of_memo(self, memo, caller->address);
    if (outcome == BROKEN || !whole || own != view->own) memo_cut(memo, 0);
    memo_begin(memo);
    return site;
}

/* Finds the site of the caller's stack without remembering the stack. */
static uint32_t find_anew(struct stack *self, struct view view, const struct caller *caller) {
    memo_cut(&self->memo, 0);
    uint32_t site = find_stack(self, &self->memo, &view, caller);
    memo_cut(&self->memo, 0);
    return site;
}

static uint32_t find_own(struct stack *self, const struct caller *caller) {
    struct view view = view_of_own(&self->own, caller->slot);
    self->other = NULL;
    return self->remembers ? find_stack(self, &self->memo, &view, caller) : find_anew(self, view, caller);
}

/* --- other stacks than the thread's own --- */

/* Guesses which remembered stack, other than the thread's own, `slot` lies on. Returns the memo of this stack, or NULL
 * if there is no such stack. A wrong guess does no harm. */
static struct memo *stack_recall(const struct stack *self, uintptr_t slot) {
    struct memo *found = NULL;
    for (int i = 0; self->others && i < OTHERS; i++) {
        struct memo *other = &self->others[i];
        struct region near = {other->extent.low - DEEPER, other->extent.high};
        if (region_has(&near, slot) && (!found || near.high < found->extent.high)) found = other;
    }
    return found;
}

static struct region extent_at_least(uintptr_t slot) {
    return (struct region){slot, os_round_up(slot + sizeof(uint64_t), OS_PAGE)};
}

static struct memo *forget_oldest(struct stack *self, uintptr_t slot) {
    struct memo *oldest = &self->others[0];
    for (int i = 1; i < OTHERS; i++)
        if (self->others[i].used < oldest->used) oldest = &self->others[i];
    memo_cut(oldest, 0);
    oldest->extent = extent_at_least(slot);
    return oldest;
}

/* Call it when the thread is on a stack that is not its own. `memo` is for this stack. Returns which part of the stack
 * can be read. The part that the latest unwinding found readable is used again only if that unwinding was on this
 * stack, too, and nothing was unmapped since. Otherwise the kernel is asked again. If the stack cannot be read as far
 * as the memo remembers it, the memo is emptied. */
static struct view come_to(struct stack *self, struct memo *memo, uintptr_t slot) {
    struct view view = view_of_other(slot);
    memo_begin(memo);
    uint32_t unmappings = __atomic_load_n(&stack_unmappings, __ATOMIC_ACQUIRE);
    bool stayed = memo == self->other && unmappings == self->unmappings && view.low >= self->looked.low &&
                  view.high <= self->looked.high;
    if (memo != self->other) memo->used = ++self->clock;
    self->other = memo;
    self->unmappings = unmappings;
    if (stayed && memo->count) view = (struct view){self->looked.low, self->looked.high, false, false};
    if (memo->count) view_look_up_to(&view, memo->extent.high);
    if (view.high < memo->extent.high) memo_cut(memo, 0);
    return view;
}

/* Notes the extent of the stack that `memo` remembers: from the slot to the end of the outermost word. Forgets the
 * extents of remembered stacks that overlap it, because these stacks are gone. */
static void note_extent(struct stack *self, struct memo *memo, uintptr_t slot) {
    struct region extent = extent_at_least(slot);
    for (uint32_t i = 0, n = memo_words(memo, memo->count); i < n; i++) {
        uintptr_t end = (uintptr_t)(memo->words[i].at + 1);
        if (!i || end > extent.high) extent.high = end;
    }
    for (int i = 0; i < OTHERS; i++) {
        struct region *there = &self->others[i].extent;
        if (there->low < extent.high && extent.low < there->high) *there = (struct region){0, 0};
    }
    memo->extent = extent;
}

/* Finds the site of a stack that is not the thread's own. `memo`: what is remembered of this stack, or NULL. */
static uint32_t find_elsewhere(struct stack *self, struct memo *memo, const struct caller *caller) {
    if (!self->others && self->remembers) self->others = arena_take(OTHERS * sizeof *self->others);
    if (!self->others) return find_anew(self, view_of_other(caller->slot), caller);
    if (!memo) memo = forget_oldest(self, caller->slot);
    struct view view = come_to(self, memo, caller->slot);
    uint32_t site = find_stack(self, memo, &view, caller);
    if (!view.own) self->looked = (struct region){view.low, view.high};
    if (view.ended) note_extent(self, memo, caller->slot);
    if (caller->slot < memo->extent.low) memo->extent.low = caller->slot;
    return site;
}

/* The calling thread's struct stack, or NULL. */
static struct stack *stack_of_thread(void) {
    struct stack **self = stack_self;
    if (unlikely(self == &of_nobody)) return NULL;
    if (unlikely(!*self)) *self = new_stack(true);
    return *self && (*self)->remembers ? *self : NULL;
}

bool stack_is_alternate(void) {
    stack_t stack;
    return seal_is_set() || os_call(SYS_sigaltstack, 0, &stack) < 0 || stack.ss_flags & SS_ONSTACK;
}

/* Whether a signal handler has left the hook with slot `inner` by longjmp. `slot` is the slot of a later hook, which
 * calls this function. The earlier hook was left if its slot is further in than `slot` or equal to `slot`. */
static bool has_left(const struct stack *self, uintptr_t inner, uintptr_t slot) {
    const struct region *on =
        region_has(&self->own.known, inner) || !self->other ? &self->own.known : &self->other->extent;
    return slot >= inner && region_has(on, inner) && region_has(on, slot) && !stack_is_alternate();
}

bool stack_has_left(uintptr_t inner, uintptr_t slot) {
    const struct stack *self = *stack_self;
    return self && has_left(self, inner, slot);
}

bool stack_has_left_call(const struct caller *inner, uintptr_t slot) {
    /* Takes the place of self->own in a thread that has no struct stack. */
    static __thread struct own_stack unknown __attribute__((tls_model("initial-exec")));
    struct stack *self = *stack_self;
    struct own_stack *own = self ? &self->own : &unknown;
    bool deeper = slot < inner->slot && own_stack_has(own, inner->slot) && own_stack_has(own, slot);
    if (deeper) return *(const uintptr_t *)inner->slot != inner->address;
    return self ? has_left(self, inner->slot, slot) : slot >= inner->slot && !stack_is_alternate();
}

static bool is_at_work(const struct stack *self, uintptr_t slot) {
    return unlikely(self->busy) && !has_left(self, self->busy, slot);
}

bool stack_is_interrupted(void) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (const struct stack *self = *stack_self; self; self = self->nested)
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

static uint32_t find_site(struct stack *self, const struct caller *caller) {
    struct memo *other = region_has(&self->own.known, caller->slot) ? NULL : stack_recall(self, caller->slot);
    if (other || !own_stack_has(&self->own, caller->slot)) return find_elsewhere(self, other, caller);
    uint32_t site = find_own(self, caller);
    if (self->returned && self->memo.count) leaf_fill(&self->leaves, &self->memo, caller, site);
    return site;
}

static uint32_t site_with(struct stack *self, const struct caller *caller) {
    uint32_t generation = __atomic_load_n(&generation_of_stacks, __ATOMIC_ACQUIRE);
    /* `busy` is still set if an earlier call was left by longjmp in the middle of its work */
    if (unlikely(self->busy)) forget_half_done(self);
    begin_work(self, caller->slot);
    if (unlikely(self->generation != generation)) {
        stack_forget(self);
        self->generation = generation;
    }
    uint32_t site = find_site(self, caller);
    end_work(self);
    return site;
}

uint32_t stack_site_of_address(uintptr_t address) {
    struct rule rule = rule_of(address);
    uint32_t place = rule.frame == RULE_NO_FRAME ? TREE_NONE : tree_step(TREE_ROOT, &rule.frame, 1);
    uint32_t stack = place == TREE_NONE ? TREE_NONE : tree_stack(place);
    return stack_site_of(stack == TREE_NONE ? TREE_ROOT : stack, address);
}

/* Call it if the stack cannot be found. Returns a site whose stack is the call's address alone. */
static uint32_t site_of_caller(const struct caller *caller) {
    ledger_lost(SNAP_LOST_FRAMES);
    return stack_site_of_address(caller->address);
}

/* Threads without a `struct stack` of their own, such as those that are about to end, share one. Only one thread at a
 * time uses it. `taken` is the pid of that thread's process. If a forked child finds its parent's pid there, the child
 * takes the struct over. */
static uint32_t site_for_nobody(const struct caller *caller) {
    static struct stack *shared;
    static uint32_t taken;
    uint32_t idle = 0, me = ledger_head->pid;
    if (!__atomic_compare_exchange_n(&taken, &idle, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED) &&
        (idle == me || !__atomic_compare_exchange_n(&taken, &idle, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
        return site_of_caller(caller); /* a thread of this process is using the shared struct */
    if (!shared) shared = new_stack(false);
    uint32_t site;
    if (shared) {
        stack_inherit(shared);
        site = site_with(shared, caller);
    } else {
        site = site_of_caller(caller);
    }
    __atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
    return site;
}

/* Whether it is certain that the hook that works in `self` was left by longjmp. A later hook, which works in `by` and
 * has the slot `slot`, has just unwound the stack to its end. If the later hook is further in, there are two cases: a
 * signal handler has interrupted the earlier hook, or the earlier hook was left. In the first case, the stack has a
 * signal frame further in than the earlier hook. So if there is no such frame, the earlier hook was left.
 * The answer is false if a hook or the innermost signal frame is not on the thread's own stack. A program may leave
 * another stack and enter it again. */
static bool is_left_behind(const struct stack *self, const struct stack *by, uintptr_t slot) {
    bool same_stack = region_has(&by->own.known, self->busy) && region_has(&by->own.known, slot) && slot < self->busy;
    return self->busy && same_stack &&
           (!by->unwound.handler ||
            (region_has(&by->own.known, by->unwound.handler) && by->unwound.handler > self->busy));
}

/* Looks at each struct of the chain (`nested`) from `self` on, up to but not including `by`. If the hook that worked in
 * the struct was left by longjmp, frees the struct for other look-ups. */
static void free_those_left(struct stack *self, const struct stack *by, uintptr_t slot) {
    for (; self != by; self = self->nested)
        if (is_left_behind(self, by, slot)) {
            forget_half_done(self);
            self->busy = 0;
        }
}

enum { NESTED_MOST = 8 };

/* Finds the site when the leaf cache does not know the stack, or must not be asked. */
__attribute__((noinline)) static uint32_t site_in_full(uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    struct caller caller = {slot, address, rbp};
    struct stack *first = stack_of_thread(), *self = first;
    if (unlikely(__atomic_load_n(&budget_wanted, __ATOMIC_RELAXED))) budget_relieve(slot);
    if (!self) return site_for_nobody(&caller);
    for (int i = 0; self && is_at_work(self, slot); i++) {
        if (!self->nested && i < NESTED_MOST) self->nested = new_stack(false);
        self = self->nested;
    }
    if (!self) return site_of_caller(&caller);
    uint32_t site = site_with(self, &caller);
    if (unlikely(self != first) && self->complete) free_those_left(first, self, slot);
    return site;
}

/* Whether the leaves (leaf.h) may be asked: the caller is on the thread's own stack, no look-up is going on in `self`,
 * and the leaves are still valid. */
static INLINE bool may_ask_leaves(const struct stack *self, uintptr_t slot) {
    return likely(!self->busy && region_has(&self->own.known, slot) &&
                  __atomic_load_n(&generation_of_stacks, __ATOMIC_ACQUIRE) == self->generation);
}

/* Ends a look-up in the leaves. `leaf`: the leaf that has the stack. If it is NULL, no leaf has the stack, so the stack
 * is unwound. */
static INLINE uint32_t site_of_leaf(struct stack *self, struct caller caller, const struct leaf *leaf) {
    uint32_t site = leaf ? leaf_hit(&self->leaves, leaf) : 0;
    end_work(self);
    return likely(leaf) ? site : site_in_full(caller.slot, caller.address, caller.rbp);
}

/* A leaf can be in either of two places, which follow from the hash `asked`. Continues a look-up when the leaf in the
 * first place does not have the stack. */
__attribute__((noinline)) static uint32_t site_in_second(struct stack *self, uintptr_t slot, uintptr_t address,
                                                         uintptr_t rbp) {
    struct caller caller = {slot, address, rbp};
    const struct leaf *leaf = leaf_second(&self->leaves, self->leaves.asked);
    return site_of_leaf(self, caller, leaf_holds(leaf, &self->memo, caller) ? leaf : NULL);
}

/* Continues a look-up when the innermost words of the stack are those of `leaf`. Whether the memo has the stack's outer
 * part must still be checked, because leaf->join is not -1. */
__attribute__((noinline)) static uint32_t site_joined(struct stack *self, uintptr_t slot, uintptr_t address,
                                                      uintptr_t rbp, const struct leaf *leaf) {
    if (unlikely(!leaf_joins(leaf, &self->memo))) return site_in_second(self, slot, address, rbp);
    return site_of_leaf(self, (struct caller){slot, address, rbp}, leaf);
}

/* Continues a look-up when the hash takes more than the three innermost addresses, or when an address has no hop. */
__attribute__((noinline)) static uint32_t site_hashed(struct stack *self, uintptr_t slot, uintptr_t address,
                                                      uintptr_t rbp) {
    struct caller caller = {slot, address, rbp};
    self->leaves.asked = leaf_hash(&self->leaves, self->own.known.high, &caller, 3 + self->leaves.more);
    const struct leaf *leaf = leaf_first(&self->leaves, self->leaves.asked);
    memo_begin(&self->memo);
    return leaf_holds(leaf, &self->memo, caller) ? site_of_leaf(self, caller, leaf)
                                                 : site_in_second(self, slot, address, rbp);
}

/* The site of the caller's stack. Rare cases, and cases that need more registers, are tail calls, so that the usual
 * case needs no stack frame. */
static INLINE uint32_t stack_find(struct stack *self, struct caller caller) {
    uint64_t hash;
    if (unlikely(!self || !may_ask_leaves(self, caller.slot))) {
        if (self) memo_begin(&self->memo); /* forgets the results of a call that was left by longjmp */
        return site_in_full(caller.slot, caller.address, caller.rbp);
    }
    begin_work(self, caller.slot);
    self->other = NULL;
    if (unlikely(self->leaves.more || !leaf_hash_of_three(&self->leaves, self->own.known.high, caller, &hash)))
        return site_hashed(self, caller.slot, caller.address, caller.rbp);
    const struct leaf *leaf = leaf_first(&self->leaves, hash);
    bool matches = leaf_matches(leaf, caller);
    if (likely(matches && leaf->join < 0)) return site_of_leaf(self, caller, leaf);
    memo_begin(&self->memo); /* forgets the results of an interrupted call */
    self->leaves.asked = hash;
    return matches ? site_joined(self, caller.slot, caller.address, caller.rbp, leaf)
                   : site_in_second(self, caller.slot, caller.address, caller.rbp);
}

#ifdef MEMSTOW_ORACLE /* a test build that compares every stack with libunwind's: tests/oracle */
void oracle_check(const struct caller *caller, uint32_t site);
#else
static inline void oracle_check(const struct caller *caller, uint32_t site) { (void)caller, (void)site; }
#endif

uint32_t stack_site(uintptr_t slot, uintptr_t address, uintptr_t rbp) {
    uint32_t site = stack_find(*stack_self, (struct caller){slot, address, rbp});
    oracle_check(&(struct caller){slot, address, rbp}, site);
    return site;
}

static void stack_forget_code(void) {
    rule_forget();
    __atomic_fetch_add(&generation_of_code, 1, __ATOMIC_RELEASE);
    generation_end_stacks();
}

void stack_unload_begins(void) {
    __atomic_fetch_add(&generation_unloading, 1, __ATOMIC_SEQ_CST);
    stack_forget_code();
}

void stack_unload_ends(void) {
    stack_forget_code();
    __atomic_fetch_sub(&generation_unloading, 1, __ATOMIC_SEQ_CST);
}
