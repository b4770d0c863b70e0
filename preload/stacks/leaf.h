/* leaf.h — finds stacks of a thread that were seen before, without unwinding them. Each is kept as a *leaf*: its
 * innermost words, and the point at which it joins the memo (memo.h), which knows the outer part.
 * In: the caller, the memo, the site (the id of a stack under a tag) of a stack that was unwound. Out: the site, if a
 * leaf has the stack. All data belong to one thread, and concern its own stack only. */
#ifndef MEMSTOW_LEAF_H
#define MEMSTOW_LEAF_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stacks/memo.h"
#include "preload/shared/os.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

enum {
    LEAF_WORDS = 7,
    LEAF_HOP_BITS = 9,
};

/* A stack that was seen before. The present stack has the leaf's site if all of these hold:
 * - its innermost frame has the state `state`;
 * - the word at offsets[i] from the caller's slot (the word that holds the return address) equals values[i], for each
 *   i;
 * - element `join` of the memo has the path `path`;
 * - the words of this element and of all outer ones are unchanged. */
struct leaf {
    struct state state;
    uint64_t path;
    uint32_t site;
    int32_t join; /* -1: the leaf's words reach to the outermost frame */
    uint64_t values[LEAF_WORDS];
    uint32_t offsets[LEAF_WORDS];
    uint32_t any_rbp; /* the stack may have any value of rbp */
};
_Static_assert(sizeof(struct leaf) == 128, "two cache lines");

/* The distance from the word on the stack that holds the return address `address` (the slot) to the word that holds the
 * next outer return address. LEAF_FAR: the distance does not follow from rsp alone. */
struct hop {
    uintptr_t address, distance;
};
#define LEAF_FAR ((uintptr_t)1 << 48)

struct leaves {
    struct hop hops[1 << LEAF_HOP_BITS]; /* a table, by hash of the address */
    struct leaf *leaves;                 /* a table, with two places for each hash; NULL: nothing is remembered */
    uint64_t asked;                      /* the hash of the last stack that was not found at once */
    uint64_t more;                       /* how many return addresses, besides the three innermost, are in the hash */
    uint32_t shift;                      /* 64 minus the number of bits that choose a place */
    uint32_t hits;                       /* stacks that were found since the leaves were judged most recently */
    uint32_t fills;                      /* leaves that were added or skipped */
    uint32_t hits_before;                /* the hits at the judgement that raised `more` */
    uint32_t patience;                   /* how many of the next judgements are skipped */
    bool skips;                          /* most fills are skipped */
};

#define INLINE inline __attribute__((always_inline))

static INLINE uint64_t leaf_upper_bits(uint64_t h, int bits) { return h * 0x9E3779B97F4A7C15u >> (64 - bits); }

static INLINE struct hop *leaf_hop(struct leaves *self, uintptr_t address) {
    return &self->hops[leaf_upper_bits(address, LEAF_HOP_BITS)];
}

/* The hash of `count` return addresses, from the innermost outwards. Memory at `end` and above is not read. */
uint64_t leaf_hash(struct leaves *self, uintptr_t end, const struct caller *caller, uint64_t count);

/* As leaf_hash, for the three innermost addresses. False: an address has no hop in the table. */
static INLINE bool leaf_hash_of_three(struct leaves *self, uintptr_t end, struct caller caller, uint64_t *hash) {
    uint64_t h = caller.address + caller.slot;
    uintptr_t slot = caller.slot, address = caller.address;
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        const struct hop *hop = leaf_hop(self, address);
        if (unlikely(hop->address != address)) return false;
        slot += hop->distance;
        if (unlikely(slot >= end)) break;
        address = *(const uint64_t *)slot;
        h = (h << 7 | h >> 57) ^ address;
    }
    *hash = h;
    return true;
}

/* The two places in which the leaf of a stack with this hash may be. Stacks that share one of these places seldom share
 * the other place, so three stacks that take turns do not drive each other out for ever. */
static INLINE struct leaf *leaf_first(const struct leaves *self, uint64_t hash) {
    return self->leaves + (hash * 0x9E3779B97F4A7C15u >> self->shift);
}

static INLINE struct leaf *leaf_second(const struct leaves *self, uint64_t hash) {
    return self->leaves + (hash * 0xC2B2AE3D27D4EB4Fu >> self->shift);
}

/* A leaf has the innermost words of a stack, and the memo has the outer part. Returns whether this outer part is
 * unchanged; if not, removes the changed elements from the memo. */
static INLINE bool leaf_joins(const struct leaf *leaf, struct memo *memo) {
    uint32_t join = (uint32_t)leaf->join;
    if (join >= memo->count || memo->elements[join].path != leaf->path || !memo_holds(memo, join + 1, 0, true))
        return false;
    memo_begin(memo); /* memo->found would say that all elements are unchanged, but the inner ones were not checked */
    return true;
}

/* Whether the state of the innermost frame and the innermost words are the leaf's. */
static INLINE bool leaf_matches(const struct leaf *leaf, struct caller caller) {
    if (leaf->state.slot != caller.slot || leaf->state.code != caller.address ||
        !(leaf->any_rbp || leaf->state.rbp == caller.rbp))
        return false;
    uint64_t differs = 0;
#pragma GCC unroll 7
    for (int i = 0; i < LEAF_WORDS; i++)
        differs |= *(const uint64_t *)(caller.slot + leaf->offsets[i]) ^ leaf->values[i];
    return likely(!differs);
}

static INLINE bool leaf_holds(const struct leaf *leaf, struct memo *memo, struct caller caller) {
    return leaf_matches(leaf, caller) && (leaf->join < 0 || leaf_joins(leaf, memo));
}

/* Counts a hit, and returns the leaf's site. */
static INLINE uint32_t leaf_hit(struct leaves *self, const struct leaf *leaf) {
    self->hits++;
    if (!leaf->site) __builtin_unreachable(); /* leaf_fill never gets site 0 */
    return leaf->site;
}

/* Adds a leaf for the caller's stack, which has this site. The memo must hold the whole stack. Call this for a stack
 * that was seen before and that no leaf had. The hash in self->asked chooses the leaf's place. If the leaves could not
 * be asked this time, self->asked still holds the hash of another stack. Then the leaf is never found, which does no
 * harm. */
void leaf_fill(struct leaves *self, const struct memo *memo, const struct caller *caller, uint32_t site);

/* Makes memory for leaves. False: there is none. */
bool leaf_begin(struct leaves *self);
/* Forgets all leaves and hops, and keeps the memory. */
void leaf_forget(struct leaves *self);

#pragma GCC visibility pop

#endif
