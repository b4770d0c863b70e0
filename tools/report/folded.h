/* folded.h — one line of folded stacks, "outermost;…;innermost BYTES", as flame graph programs read them.
 * In: names of frames, one by one. Out: lines on standard output, in which no name ends a frame or a line. */
#ifndef MEMSTOW_FOLDED_H
#define MEMSTOW_FOLDED_H

#include "tools/report/report_profile.h"

/* The frames so far. */
struct folded_path {
    char *text;
    size_t used, room;
    bool failed; /* no memory: nothing is written any more */
};

/* Puts a frame at the inner end. `used` of before takes it off again. */
void folded_push(struct folded_path *path, const char *name);
/* A function of a frame: "py:FUNCTION (FILE:LINE)" where it is Python's. */
void folded_push_symbol(struct folded_path *path, const struct named_frame *frame, const struct symbol *symbol);
/* A line, unless it would hold nothing. */
void folded_print(const struct folded_path *path, uint64_t bytes);
void folded_clear(struct folded_path *path);

/* folded_tree.c: all stacks as one tree, in which what holds less than `least` bytes is merged into "(n smaller)"
 * beside what is as large, and what is deeper than `deepest` frames into "(deeper)". 0, or -1: no memory. */
struct folded_limits {
    uint64_t least;
    size_t deepest;
};
struct folded_merged {
    uint64_t smaller, deeper; /* bytes */
};
int folded_tree(const struct report *report, const struct roots *roots, struct folded_limits limits,
                struct folded_merged *merged);

#endif
