/* profile_tree.c — writes all stacks as one tree, without branches that are too small to see; see profile.h. Frames
 * with the same text are one frame, even if the calls are at different places in a function. The walk is not recursive,
 * because a program's stack may be deeper than memstow's own stack allows. */
#include "tools/export/profile.h"
#include "tools/base/list.h"
#include "tools/views/calltree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Functions with the same text are one frame. Names from symbols.h are compared by their pointers, because
 * equal names have the same pointer. */
struct alike {
    UT_hash_handle hh;
    struct words {
        const char *function, *file; /* file: the file of Python code, or the module of a nameless native function */
        uint64_t at;                 /* a line of Python code, or a nameless native function's offset in the module */
    } words;
    struct calltree_line line; /* the first line with this text */
};

/* Two amounts of a branch, such as before and after. A report uses side 0 only. */
struct amounts {
    uint64_t side[2];
};

/* A frame that is being written: its callees, and the index of the callee to write next. */
struct level {
    struct branches below;
    size_t next, used; /* used: length of the stack up to this frame */
};

struct walk {
    const struct profile *profile;
    struct profile_sink *sink;
    struct calltree tree;
    struct profile_limits limits;
    struct alike *alike;
    struct level *levels;
    size_t depth, capacity;
    struct profile_merged *merged;
};

/* --- names of frames --- */

static const struct symbol *symbol_of(const struct named_frame *frame, uint32_t level) {
    return &frame->symbols[level < frame->count ? frame->count - 1 - level : 0];
}

static struct words words_of(const struct named_frame *frame, const struct symbol *symbol) {
    struct words words;
    memset(&words, 0, sizeof words);
    words.function = symbol->function;
    if (frame->python) {
        words.file = symbol->file;
        words.at = symbol->line;
    } else if (!symbol->function) {
        words.file = frame->module;
        words.at = frame->offset;
    }
    return words;
}

static struct calltree_line name_line(void *context, struct calltree_line line, bool *more) {
    struct walk *walk = context;
    const struct named_frame *frame = symbols_frame(walk->profile->symbols, line.frame);
    struct words words = words_of(frame, symbol_of(frame, line.level));
    struct alike *alike;
    *more = line.level + 1 < frame->count;
    HASH_FIND(hh, walk->alike, &words, sizeof words, alike);
    if (alike) return alike->line;
    alike = calloc(1, sizeof *alike);
    if (!alike) return line;
    alike->words = words;
    alike->line = line;
    HASH_ADD(hh, walk->alike, words, sizeof words, alike);
    return line;
}

static bool profile_tree_skips(void *context, uint32_t frame) { return profile_each_skips(context, frame); }

/* --- walking the tree --- */

/* The two amounts of a branch. In this tree, `bytes` is their sum, and `variance` is not a variance: it has the amount
 * of side 1. */
static struct amounts amounts_of(const struct branch *branch) {
    uint64_t second = (uint64_t)branch->variance; /* exact below 2^53; a larger amount was rounded, perhaps up */
    if (second > branch->bytes) second = branch->bytes;
    return (struct amounts){{branch->bytes - second, second}};
}

static struct amounts sum_below(const struct branches *below, size_t from) {
    struct amounts sum = {{0, 0}};
    for (size_t i = from; i < below->count; i++) {
        struct amounts of = amounts_of(&below->list[i]);
        for (int side = 0; side < 2; side++) sum.side[side] += of.side[side];
    }
    return sum;
}

static uint64_t both_of(struct amounts amounts) { return amounts.side[0] + amounts.side[1]; }

static uint64_t profile_tree_less(uint64_t all, uint64_t part) { return all > part ? all - part : 0; }

static void profile_tree_put(struct walk *walk, struct amounts amounts) {
    if (both_of(amounts) && !walk->sink->failed) walk->sink->put(walk->sink, amounts.side);
}

/* Goes one level inwards, to a frame, and writes the amounts of the stacks that end at it. `all`: the amounts of the
 * frame with its callees. `nowhere`: a name for stacks that end at the root; NULL: the frame is not the root. Returns
 * 0, or -1: no memory. */
static int profile_tree_enter(struct walk *walk, const struct branch *branch, struct amounts all, const char *nowhere) {
    if (!LIST_GROW(walk->levels, walk->depth, walk->capacity)) return -1;
    struct level *level = &walk->levels[walk->depth];
    *level = (struct level){.used = walk->sink->used};
    if (calltree_expand(&walk->tree, branch, &level->below) < 0) return -1;
    walk->depth++;
    struct amounts below = sum_below(&level->below, 0);
    struct amounts own = {
        {profile_tree_less(all.side[0], below.side[0]), profile_tree_less(all.side[1], below.side[1])}};
    if (nowhere && both_of(own)) walk->sink->push(walk->sink, nowhere);
    profile_tree_put(walk, own);
    walk->sink->used = level->used;
    return 0;
}

/* Writes `count` merged branches, whose sum is `amounts`, as one frame. `deeper` says why they were merged: they are
 * too deep (true) or too small (false). */
static void write_merged(struct walk *walk, size_t count, struct amounts amounts, bool deeper) {
    char name[64];
    size_t before = walk->sink->used;
    snprintf(name, sizeof name, deeper ? "(deeper)" : "(%zu smaller)", count);
    if (count) walk->sink->push(walk->sink, name);
    profile_tree_put(walk, amounts);
    walk->sink->used = before;
    *(deeper ? &walk->merged->deeper : &walk->merged->smaller) += both_of(amounts);
}

/* Writes the next branch of the innermost level. If that branch is too small or too deep, or if there is none, writes
 * all remaining branches of the level as one frame, and leaves the level. Returns 0, or -1: no memory. */
static int profile_tree_step(struct walk *walk) {
    struct level *level = &walk->levels[walk->depth - 1];
    const struct branch *branch = &level->below.list[level->next];
    bool deeper = walk->depth > walk->limits.deepest;
    walk->sink->used = level->used;
    if (level->next < level->below.count && branch->bytes >= walk->limits.least && !deeper) {
        const struct named_frame *frame = symbols_frame(walk->profile->symbols, branch->line.frame);
        level->next++;
        walk->sink->push_function(walk->sink, frame, symbol_of(frame, branch->line.level));
        return profile_tree_enter(walk, branch, amounts_of(branch), NULL);
    }
    write_merged(walk, level->below.count - level->next, sum_below(&level->below, level->next), deeper);
    calltree_clear(&level->below);
    walk->depth--;
    return 0;
}

static void end_tree(struct walk *walk) {
    while (walk->depth) calltree_clear(&walk->levels[--walk->depth].below);
    calltree_end(&walk->tree);
}

/* Writes one tree. both[node] is the sum of the node's two amounts. second[node] is the second amount; if there are no
 * second amounts, `second` is NULL. The tree frees these two arrays. `all`: the sums over all nodes. */
static int write_tree(struct walk *walk, uint64_t *both, double *second, struct amounts all) {
    int result = calltree_begin(&walk->tree, walk->profile->image, both, second);
    walk->tree.line = name_line;
    walk->tree.line_context = walk;
    walk->tree.skips = walk->profile->python ? profile_tree_skips : NULL;
    walk->tree.skips_context = (void *)walk->profile;
    if (result == 0) result = profile_tree_enter(walk, NULL, all, walk->profile->without_frames);
    while (result == 0 && walk->depth) result = profile_tree_step(walk);
    end_tree(walk);
    return result;
}

/* --- one tree for each root; a root has the parts from `first` to `end` --- */

static bool has_stack(const struct walk *walk, const struct profile_part *part) {
    return part->stack && part->stack < walk->profile->image->node_count;
}

static int write_stacks(struct walk *walk, size_t first, size_t end) {
    const struct profile *profile = walk->profile;
    size_t nodes = profile->image->node_count + 1;
    uint64_t *both = calloc(nodes, sizeof *both);
    double *second = profile->pairs ? calloc(nodes, sizeof *second) : NULL;
    struct amounts all = {{0, 0}};
    if (!both || (profile->pairs && !second)) {
        free(both);
        free(second);
        return -1;
    }
    for (size_t i = first; i < end; i++) {
        const struct profile_part *part = &profile->parts[i];
        if (!has_stack(walk, part)) continue;
        both[part->stack] += part->amounts[0] + part->amounts[1];
        if (second) second[part->stack] += (double)part->amounts[1];
        for (int side = 0; side < 2; side++) all.side[side] += part->amounts[side];
    }
    return write_tree(walk, both, second, all);
}

static bool is_like(const struct profile_part *a, const struct profile_part *b) {
    return a->nowhere == b->nowhere || strcmp(a->nowhere, b->nowhere) == 0;
}

/* Writes parts without a call stack. Parts with the same name become one frame. Such parts are adjacent, because
 * by_root sorts by name. */
static void write_stackless(struct walk *walk, size_t first, size_t end) {
    size_t before = walk->sink->used;
    for (size_t i = first, next; i < end; i = next) {
        struct amounts sum = {{0, 0}};
        for (next = i; next < end && is_like(&walk->profile->parts[i], &walk->profile->parts[next]); next++)
            for (int side = 0; side < 2; side++) sum.side[side] += walk->profile->parts[next].amounts[side];
        walk->sink->push(walk->sink, walk->profile->parts[i].nowhere);
        profile_tree_put(walk, sum);
        walk->sink->used = before;
    }
}

/* Compares parts for qsort: by root. Among the parts of one root, those with a stack come first, then those without a
 * stack, which are sorted by name. */
static int by_root(const void *left, const void *right) {
    const struct profile_part *a = left, *b = right;
    if (a->root != b->root) return a->root < b->root ? -1 : 1;
    if (!a->stack != !b->stack) return a->stack ? -1 : 1;
    if (a->stack || a->nowhere == b->nowhere) return 0;
    return strcmp(a->nowhere, b->nowhere);
}

/* Sorts the parts by root. A part whose stack is no node of the image becomes a part without a stack. */
static void sort_parts(const struct walk *walk) {
    struct profile_part *parts = walk->profile->parts;
    for (size_t i = 0; i < walk->profile->part_count; i++)
        if (!has_stack(walk, &parts[i])) parts[i].stack = 0;
    qsort(parts, walk->profile->part_count, sizeof *parts, by_root);
}

static struct amounts sum_of(const struct profile *profile, size_t first, size_t end) {
    struct amounts sum = {{0, 0}};
    for (size_t i = first; i < end; i++)
        for (int side = 0; side < 2; side++) sum.side[side] += profile->parts[i].amounts[side];
    return sum;
}

static int write_root(struct walk *walk, const char *name, size_t first, size_t end) {
    size_t stackless = first;
    while (stackless < end && walk->profile->parts[stackless].stack) stackless++;
    walk->sink->used = 0;
    if (name) walk->sink->push(walk->sink, name);
    size_t before = walk->sink->used;
    if (stackless > first && write_stacks(walk, first, stackless) < 0) return -1;
    walk->sink->used = before;
    write_stackless(walk, stackless, end);
    return 0;
}

/* Writes the trees of the roots. Roots that are too small are written as one frame at the end. */
static int write_roots(struct walk *walk) {
    const struct profile *profile = walk->profile;
    struct amounts small = {{0, 0}};
    size_t count = 0;
    int result = 0;
    for (size_t i = 0, next; i < profile->part_count && result == 0; i = next) {
        const char *name = profile->roots[profile->parts[i].root];
        for (next = i + 1; next < profile->part_count && profile->parts[next].root == profile->parts[i].root;) next++;
        struct amounts sum = sum_of(profile, i, next);
        if (both_of(sum) >= walk->limits.least || !name) {
            result = write_root(walk, name, i, next);
        } else if (both_of(sum)) {
            for (int side = 0; side < 2; side++) small.side[side] += sum.side[side];
            count++;
        }
    }
    walk->sink->used = 0;
    write_merged(walk, count, small, false);
    return result;
}

static void profile_tree_forget(struct walk *walk) {
    struct alike *one, *next;
    HASH_ITER(hh, walk->alike, one, next) {
        HASH_DEL(walk->alike, one);
        free(one);
    }
    free(walk->levels);
}

int profile_tree(struct profile *profile, struct profile_sink *sink, struct profile_limits limits,
                 struct profile_merged *merged) {
    struct walk walk = {.profile = profile, .sink = sink, .limits = limits, .merged = merged};
    *merged = (struct profile_merged){0};
    sort_parts(&walk);
    int result = write_roots(&walk);
    profile_tree_forget(&walk);
    return sink->failed ? -1 : result;
}
