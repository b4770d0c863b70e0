/* folded_tree.c — writes all stacks as one tree, without branches that are too small to see; see folded.h. Frames with
 * the same text are one frame, even if the calls are at different places in a function. The walk is not recursive,
 * because a stack may be as deep as the program's. */
#include "tools/views/calltree.h"
#include "tools/report/folded.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* Functions with the same text. Equal names of symbols.h are the same pointer. */
struct alike {
    UT_hash_handle hh;
    struct words {
        const char *function, *file; /* of native code: the module, if the function is not known */
        uint64_t place;              /* of Python: the line; of code without a name: the address */
    } words;
    struct calltree_line line; /* the first such line */
};

/* A frame that is being written: its callees, and the next one of them. */
struct level {
    struct branches below;
    size_t next, path; /* path: length of the path up to this frame */
};

struct walk {
    const struct report *report;
    struct calltree tree;
    struct folded_limits limits;
    struct folded_path path;
    struct alike *alike;
    struct level *levels;
    size_t depth, room;
    struct folded_merged merged;
};

/* --- names --- */

static const struct symbol *symbol_of(const struct named_frame *frame, uint32_t level) {
    return &frame->symbols[level < frame->count ? frame->count - 1 - level : 0];
}

static struct words words_of(const struct named_frame *frame, const struct symbol *symbol) {
    struct words words;
    memset(&words, 0, sizeof words);
    words.function = symbol->function;
    if (frame->python) {
        words.file = symbol->file;
        words.place = symbol->line;
    } else if (!symbol->function) {
        words.file = frame->module;
        words.place = frame->offset;
    }
    return words;
}

static struct calltree_line name_line(void *context, struct calltree_line line, bool *more) {
    struct walk *walk = context;
    const struct named_frame *frame = symbols_frame(walk->report->symbols, line.frame);
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

static bool skips(void *context, uint32_t frame) { return report_skips_frame(context, frame); }

/* --- walking --- */

static uint64_t sum_below(const struct branches *below, size_t from) {
    uint64_t sum = 0;
    for (size_t i = from; i < below->count; i++) sum += below->list[i].bytes;
    return sum;
}

/* Goes one level inwards, and writes the bytes that end at this frame. */
static int enter(struct walk *walk, const struct branch *branch, uint64_t bytes, const char *nowhere) {
    if (walk->depth == walk->room) {
        size_t room = walk->room ? 2 * walk->room : 64;
        struct level *grown = realloc(walk->levels, room * sizeof *grown);
        if (!grown) return -1;
        walk->levels = grown;
        walk->room = room;
    }
    struct level *level = &walk->levels[walk->depth];
    *level = (struct level){.path = walk->path.used};
    if (calltree_expand(&walk->tree, branch, &level->below) < 0) return -1;
    walk->depth++;
    uint64_t below = sum_below(&level->below, 0);
    if (nowhere && bytes > below) folded_push(&walk->path, nowhere);
    folded_print(&walk->path, bytes > below ? bytes - below : 0);
    walk->path.used = level->path;
    return 0;
}

/* Writes `count` merged branches as one frame. */
static void write_merged(struct walk *walk, size_t count, uint64_t bytes, bool deeper) {
    char name[64];
    size_t before = walk->path.used;
    snprintf(name, sizeof name, deeper ? "(deeper)" : "(%zu smaller)", count);
    folded_push(&walk->path, name);
    folded_print(&walk->path, bytes);
    walk->path.used = before;
    *(deeper ? &walk->merged.deeper : &walk->merged.smaller) += bytes;
}

/* Writes the next branch of the innermost level. If that is too small, it leaves the level. */
static int step(struct walk *walk) {
    struct level *level = &walk->levels[walk->depth - 1];
    const struct branch *branch = &level->below.list[level->next];
    bool deeper = walk->depth > walk->limits.deepest;
    walk->path.used = level->path;
    if (level->next < level->below.count && branch->bytes >= walk->limits.least && !deeper) {
        const struct named_frame *frame = symbols_frame(walk->report->symbols, branch->line.frame);
        level->next++;
        folded_push_symbol(&walk->path, frame, symbol_of(frame, branch->line.level));
        return enter(walk, branch, branch->bytes, NULL);
    }
    write_merged(walk, level->below.count - level->next, sum_below(&level->below, level->next), deeper);
    branches_clear(&level->below);
    walk->depth--;
    return 0;
}

static void end_tree(struct walk *walk) {
    while (walk->depth) branches_clear(&walk->levels[--walk->depth].below);
    calltree_end(&walk->tree);
}

static int write_tree(struct walk *walk, uint64_t *bytes, uint64_t all) {
    int result = calltree_begin(&walk->tree, walk->report->image, bytes, NULL);
    walk->tree.line = name_line;
    walk->tree.line_context = walk;
    walk->tree.skips = walk->report->python ? skips : NULL;
    walk->tree.skips_context = (void *)walk->report;
    if (result == 0) result = enter(walk, NULL, all, report_no_frames(walk->report, 0));
    while (result == 0 && walk->depth) result = step(walk);
    end_tree(walk);
    return result;
}

/* --- one tree for each root --- */

static bool belongs(const struct walk *walk, const struct roots *roots, const struct total *total, size_t root) {
    return report_keeps(walk->report, total) && roots_of(roots, total->tag) == root;
}

static bool has_stack(const struct walk *walk, const struct total *total) {
    return total->stack && total->stack < walk->report->image->node_count;
}

/* The bytes of each stack itself, and their sum. NULL: no memory. */
static uint64_t *node_bytes(const struct walk *walk, const struct roots *roots, size_t root, uint64_t *all) {
    const struct image *image = walk->report->image;
    uint64_t *bytes = calloc(image->node_count + 1, sizeof *bytes);
    *all = 0;
    for (size_t i = 0; bytes && i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (!belongs(walk, roots, total, root) || !has_stack(walk, total)) continue;
        bytes[total->stack] += total_measure(total, walk->report->measure);
        *all += total_measure(total, walk->report->measure);
    }
    return bytes;
}

/* Writes memory without a call stack, by module; such modules are few. */
static int write_stackless(struct walk *walk, const struct roots *roots, size_t root) {
    const struct image *image = walk->report->image;
    uint64_t *bytes = calloc(image->module_count + 1, sizeof *bytes);
    size_t before = walk->path.used;
    for (size_t i = 0; bytes && i < image->total_count; i++) {
        const struct total *total = &image->totals[i];
        if (!belongs(walk, roots, total, root) || has_stack(walk, total)) continue;
        bytes[total->module <= image->module_count ? total->module : 0] += total_measure(total, walk->report->measure);
    }
    for (size_t i = 0; bytes && i <= image->module_count; i++) {
        folded_push(&walk->path, report_no_frames(walk->report, (uint32_t)i));
        folded_print(&walk->path, bytes[i]);
        walk->path.used = before;
    }
    free(bytes);
    return bytes ? 0 : -1;
}

static int write_root(struct walk *walk, const struct roots *roots, size_t root) {
    uint64_t all, *bytes = node_bytes(walk, roots, root, &all);
    walk->path.used = 0;
    if (roots->names[root]) folded_push(&walk->path, roots->names[root]);
    size_t before = walk->path.used;
    if (!bytes || write_tree(walk, bytes, all) < 0) return -1;
    walk->path.used = before;
    return write_stackless(walk, roots, root);
}

static uint64_t *root_bytes(const struct walk *walk, const struct roots *roots) {
    const struct image *image = walk->report->image;
    uint64_t *bytes = calloc(roots->count + 1, sizeof *bytes);
    for (size_t i = 0; bytes && i < image->total_count; i++)
        if (report_keeps(walk->report, &image->totals[i]))
            bytes[roots_of(roots, image->totals[i].tag)] += total_measure(&image->totals[i], walk->report->measure);
    return bytes;
}

/* Writes the roots, and the small ones together at the end. */
static int write_roots(struct walk *walk, const struct roots *roots, const uint64_t *bytes) {
    uint64_t small = 0;
    size_t count = 0;
    int result = 0;
    for (size_t i = 0; i < roots->count && result == 0; i++) {
        if (bytes[i] >= walk->limits.least || !roots->names[i]) {
            result = write_root(walk, roots, i);
        } else if (bytes[i]) {
            small += bytes[i];
            count++;
        }
    }
    walk->path.used = 0;
    write_merged(walk, count, small, false);
    return result;
}

static void forget(struct walk *walk) {
    struct alike *one, *next;
    HASH_ITER(hh, walk->alike, one, next) {
        HASH_DEL(walk->alike, one);
        free(one);
    }
    free(walk->levels);
    folded_clear(&walk->path);
}

int folded_tree(const struct report *report, const struct roots *roots, struct folded_limits limits,
                struct folded_merged *merged) {
    struct walk walk = {.report = report, .limits = limits};
    uint64_t *bytes = root_bytes(&walk, roots);
    int result = bytes ? write_roots(&walk, roots, bytes) : -1;
    if (walk.path.failed) result = -1;
    *merged = walk.merged;
    forget(&walk);
    free(bytes);
    return result;
}
