/* folded.h — lines of folded stacks, "outermost;…;innermost BYTES", as flame graph programs read them.
 * In: names of frames, one by one. Out: lines on standard output. A name never ends a frame or a line. */
#ifndef MEMSTOW_FOLDED_H
#define MEMSTOW_FOLDED_H

#include "tools/report/report_profile.h"

/* The frames of the current stack. */
struct folded_path {
    char *text;
    size_t used, room;
    bool failed; /* no memory: nothing more is written */
};

/* Adds a frame at the inner end. To remove it, restore `used`. */
void folded_push(struct folded_path *path, const char *name);
/* Adds a function of a frame; a Python function as "py:FUNCTION (FILE:LINE)". */
void folded_push_symbol(struct folded_path *path, const struct named_frame *frame, const struct symbol *symbol);
/* Prints a line, unless its bytes are 0. */
void folded_print(const struct folded_path *path, uint64_t bytes);
void folded_clear(struct folded_path *path);

/* folded_tree.c: writes all stacks as one tree. Branches of less than `least` bytes are merged into "(n smaller)"
 * beside larger ones, and frames deeper than `deepest` into "(deeper)". Returns 0, or -1: no memory. */
struct folded_limits {
    uint64_t least;
    size_t deepest;
};
struct folded_merged {
    uint64_t smaller, deeper; /* bytes that were merged */
};
int folded_tree(const struct report *report, const struct roots *roots, struct folded_limits limits,
                struct folded_merged *merged);

#endif
