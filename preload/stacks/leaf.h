/* leaf.h — stacks of a thread that were seen before, and need no unwinding at all. In: the caller, the thread's memory
 * of its own stack (memo.h), the site that was found. Out: the site, if the stack is one of them. Everything belongs to
 * one thread, and is about its own stack. A look-up writes nothing but hops and a count. */
#ifndef MEMSTOW_LEAF_H
#define MEMSTOW_LEAF_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stacks/memo.h"
#include "preload/shared/os.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

enum {
    LEAF_WAYS = 2,
    LEAF_WORDS = 7,
    LEAF_HOP_BITS = 7,
};

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

/* How far it is from the slot of a place to that of its caller; LEAF_FAR when that depends on more than rsp. */
struct hop {
    uintptr_t address, distance;
};
#define LEAF_FAR ((uintptr_t)1 << 48)

struct leaves {
    struct hop hops[1 << LEAF_HOP_BITS]; /* by hash of the address: what is asked of rules with each stack */
    struct leaf *leaves;                 /* sets of LEAF_WAYS; NULL: nothing is kept */
    uint64_t more;                       /* how many return addresses choose a set besides the three innermost */
    uint32_t shift;                      /* 64 less the bits that choose the set */
    uint32_t hits;                       /* since it was last seen to */
    uint32_t fills;                      /* that were asked for */
    uint32_t hits_before;                /* there were `more`, in as many fills */
    uint32_t patience;                   /* how often it is not judged by its hits yet */
    bool spares;                         /* most of them are not done */
};

#define INLINE inline __attribute__((always_inline))

static INLINE uint64_t leaf_upper_bits(uint64_t h, int bits) { return h * 0x9E3779B97F4A7C15u >> (64 - bits); }

static INLINE struct hop *leaf_hop(struct leaves *self, uintptr_t address) {
    return &self->hops[leaf_upper_bits(address, LEAF_HOP_BITS)];
}

/* The hash of `count` return addresses, from that of the innermost on. `end`: of what may be read. */
uint64_t leaf_hash(struct leaves *self, uintptr_t end, const struct caller *caller, uint64_t count);

/* The same of the three innermost. */
static INLINE uint64_t leaf_hash_of_three(struct leaves *self, uintptr_t end, struct caller caller) {
    uint64_t h = caller.address + caller.slot;
    uintptr_t slot = caller.slot, address = caller.address;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const struct hop *hop = leaf_hop(self, address);
        if (unlikely(hop->address != address))
            return leaf_hash(self, end, &(struct caller){caller.slot, caller.address, caller.rbp}, 3);
        slot += hop->distance;
        if (unlikely(slot >= end)) break;
        address = *(const uint64_t *)slot;
        h = (h << 7 | h >> 57) ^ address;
    }
    return h;
}

static INLINE struct leaf *leaf_set(const struct leaves *self, uint64_t hash) {
    return self->leaves + (hash * 0x9E3779B97F4A7C15u >> self->shift) * LEAF_WAYS;
}

/* Whether what lies outside a leaf's words is what it was. Of the memo, what is found not to be is forgotten. */
bool leaf_joins(const struct leaf *leaf, struct memo *memo);

static INLINE bool leaf_holds(const struct leaf *leaf, struct memo *memo, struct caller caller) {
    if (leaf->state.slot != caller.slot || leaf->state.place != caller.address ||
        !(leaf->any_rbp || leaf->state.rbp == caller.rbp))
        return false;
    uint64_t differs = 0;
#pragma GCC unroll 7
    for (int i = 0; i < LEAF_WORDS; i++)
        differs |= *(const uint64_t *)(caller.slot + leaf->offsets[i]) ^ leaf->values[i];
    if (unlikely(differs)) return false;
    return leaf->join < 0 || leaf_joins(leaf, memo);
}

static INLINE uint32_t leaf_find_in(struct leaves *self, const struct leaf *leaf, struct memo *memo,
                                    struct caller caller) {
    if (!leaf_holds(leaf, memo, caller) && !leaf_holds(++leaf, memo, caller)) return 0;
    self->hits++;
    if (!leaf->site) __builtin_unreachable(); /* leaf_fill is given none such */
    return leaf->site;
}

/* The site of the caller's stack; 0 when it is not there. The set is chosen by the three innermost return addresses, if
 * the leaves have not `more`. */
static INLINE uint32_t leaf_find(struct leaves *self, struct memo *memo, uintptr_t end, struct caller caller) {
    uint64_t hash = leaf_hash_of_three(self, end, caller);
    return leaf_find_in(self, leaf_set(self, hash), memo, caller);
}
uint32_t leaf_find_more(struct leaves *self, struct memo *memo, uintptr_t end, const struct caller *caller);

/* The caller's stack, all of which is in the memo, has this site. It has been seen before, and not been found here. */
void leaf_fill(struct leaves *self, const struct memo *memo, uintptr_t end, const struct caller *caller, uint32_t site);

/* False: there is no memory. */
bool leaf_begin(struct leaves *self);
void leaf_forget(struct leaves *self);

#pragma GCC visibility pop

#endif
