/* leaf.c — see leaf.h. */
#include "preload/stacks/leaf.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/stacks/rule.h"

enum {
    FIRST_BITS = 9, /* there are 2^FIRST_BITS leaves at first, and 2^LAST_BITS at most */
    LAST_BITS = 11,
    MORE_ADDRESSES = 8,
    PERIOD = 1024, /* after this many fills the hits are judged */
    ENOUGH = 4,    /* this many hits for each fill are enough */
    ONE_IN = 8,    /* when most fills are skipped, one in 8 is done */
};

/* Puts the hop (see leaf.h) of an address into the table, and returns the hop. If the rule of the address is not read
 * yet, leaves the table as it is, and returns a hop with the distance LEAF_FAR. */
__attribute__((noinline)) static const struct hop *find_hop(struct leaves *self, uintptr_t address) {
    static const struct hop unknown = {0, LEAF_FAR};
    struct hop *hop = leaf_hop(self, address);
    uint32_t how = rule_how(address);
    if (rule_kind(how) == RULE_STALE) return &unknown; /* the rule is not read yet */
    *hop = (struct hop){address, rule_kind(how) == RULE_SP ? (uintptr_t)rule_cfa(how) : LEAF_FAR};
    return hop;
}

/* Continues the hash along the saved frame pointers of code that has them. A wrong pointer gives a wrong hash, and the
 * look-up finds nothing. */
__attribute__((noinline)) static uint64_t hash_of_chain(uint64_t h, uintptr_t rbp, uintptr_t slot, uintptr_t end,
                                                        uint64_t count) {
    for (; count && rbp > slot && rbp < end - sizeof(uint64_t) && rbp % sizeof(uint64_t) == 0; count--) {
        const uint64_t *frame = (const uint64_t *)rbp;
        h = (h << 7 | h >> 57) ^ frame[1];
        slot = rbp;
        rbp = frame[0];
    }
    return h;
}

/* See leaf_hash. In recursion most frames have the same length as the frame before, so `distance` seldom changes. The
 * processor predicts that it does not change, and reads the next address without waiting for the hop. */
static INLINE uint64_t leaf_hash_of(struct leaves *self, uintptr_t end, const struct caller *caller, uint64_t count) {
    uintptr_t slot = caller->slot, address = caller->address, distance = 0;
    uint64_t h = address + slot;
    while (--count) {
        const struct hop *hop = leaf_hop(self, address);
        if (unlikely(hop->address != address)) hop = find_hop(self, address);
        if (hop->distance != distance) {
            distance = hop->distance;
            __asm__("" : "+r"(distance)); /* keeps the compiler from replacing the branch by a conditional move */
        }
        uintptr_t next = slot + distance;
        if (unlikely(next >= end)) return self->more ? hash_of_chain(h, caller->rbp, slot, end, count) : h;
        slot = next;
        address = *(const uint64_t *)slot;
        h = (h << 7 | h >> 57) ^ address;
    }
    return h;
}

uint64_t leaf_hash(struct leaves *self, uintptr_t end, const struct caller *caller, uint64_t count) {
    return leaf_hash_of(self, end, caller, count);
}

/* Returns how many of the memo's outermost elements a new leaf leaves out. The leaf takes in as many inner elements as
 * it can: their words must fit into the leaf, and they must have no Python loop. */
static uint32_t leaf_joined(const struct memo *memo) {
    const struct element *elements = memo->elements, *top = &elements[memo->count - 1];
    uint32_t k = memo->count;
    while (k > 1 && top->words - elements[k - 2].words <= LEAF_WORDS && top->evals == elements[k - 2].evals) k--;
    return k == 1 && top->words <= LEAF_WORDS && !top->evals ? 0 : k;
}

static bool leaves_begin(struct leaves *self, uint32_t bits) {
    struct leaf *leaves = arena_take(sizeof *leaves << bits);
    if (!leaves) return false;
    self->leaves = leaves;
    /* If a signal handler ends by longjmp between these lines, `shift` must not show more leaves than there are. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->shift = 64 - bits;
    self->patience = (1u << bits) / PERIOD;
    return true;
}

/* Judges the leaves by their hits. Few hits mean that too many stacks replace each other's leaves. In that case, the
 * function takes the first of these measures that is still possible:
 *   - It makes more leaves, and the hash takes more return addresses. This helps in recursion, where many stacks have
 *   the same innermost addresses.
 *   - If more addresses have not helped, the hash takes three again. (More addresses do not help if stacks differ only
 *   in their Python frames.)
 *   - If there were fewer hits than fills, most fills are skipped for some time, so that leaves stay longer. */
static void see_to(struct leaves *self) {
    uint32_t hits = self->hits, bits = 64 - self->shift;
    self->hits = 0;
    if (self->patience) {
        self->patience--; /* the table is not full yet */
        return;
    }
    self->skips = false;
    if (hits >= ENOUGH * PERIOD) return;
    if (bits < LAST_BITS && leaves_begin(self, bits + 1)) {
        if (!self->more) self->hits_before = hits;
        self->more = MORE_ADDRESSES;
        ledger_note_own_memory();
    } else if (self->more && hits < 2 * self->hits_before) {
        self->more = 0;
    } else {
        self->skips = hits < PERIOD;
    }
}

static bool is_worth_it(struct leaves *self) {
    if (++self->fills % PERIOD == 0) see_to(self);
    return !self->skips || self->fills % ONE_IN == 0;
}

/* Chooses one of the two places of a new leaf: a free place if there is one, otherwise each place in turn. */
static struct leaf *leaf_place(const struct leaves *self, uint64_t hash) {
    struct leaf *first = leaf_first(self, hash), *second = leaf_second(self, hash);
    if (!first->state.slot) return first;
    return !second->state.slot || (self->fills ^ self->fills / ONE_IN) % 2 ? second : first;
}

void leaf_fill(struct leaves *self, const struct memo *memo, const struct caller *caller, uint32_t site) {
    const struct element *top = &memo->elements[memo->count - 1];
    uint32_t k = leaf_joined(memo), n = 0;
    if (k == memo->count || !is_worth_it(self)) return;
    const struct word *word = memo->words + memo_words(memo, k), *last = memo->words + top->words;
    struct leaf *leaf = leaf_place(self, self->asked);
    leaf->state.slot = 0;
    for (; word < last; word++, n++) {
        uintptr_t offset = (uintptr_t)word->at - caller->slot;
        if (unlikely(offset > INT32_MAX)) return;
        leaf->offsets[n] = (uint32_t)offset;
        leaf->values[n] = word->value;
    }
    for (; n < LEAF_WORDS; n++) {
        leaf->offsets[n] = 0; /* an unused entry compares the return address, at offset 0 */
        leaf->values[n] = caller->address;
    }
    leaf->state = (struct state){caller->slot, caller->address, caller->rbp};
    leaf->any_rbp = !top->needs_rbp;
    leaf->join = (int32_t)k - 1;
    leaf->path = k ? memo->elements[k - 1].path : 0;
    leaf->site = site;
}

bool leaf_begin(struct leaves *self) { return leaves_begin(self, FIRST_BITS); }

void leaf_forget(struct leaves *self) {
    uint32_t count = self->leaves ? 1u << (64 - self->shift) : 0;
    for (uint32_t i = 0; i < count; i++) self->leaves[i].state.slot = 0;
    memset(self->hops, 0, sizeof self->hops);
}
