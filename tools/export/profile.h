/* profile.h — call stacks with their amounts, as profiles have them.
 * In: parts, each with a stack, its owner and one or two amounts. Out: calls of a sink, which knows the form. The
 * amounts always add up to those of all parts. */
#ifndef MEMSTOW_PROFILE_H
#define MEMSTOW_PROFILE_H

#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

/* The amounts of one stack. A report has one amount; a comparison has two, before and after. */
struct profile_part {
    uint32_t root, stack; /* root: index of the owner's name; stack 0: none was recorded */
    const char *nowhere;  /* a frame to show if the stack has no frames */
    uint64_t amounts[2];
};

struct profile {
    const struct image *image;
    struct symbols *symbols;
    bool python;                   /* leaves out native frames, and Python's import machinery */
    char *const *roots;            /* outermost frames; NULL: there is none */
    const char *without_frames;    /* the frame to show if all frames of a stack are left out */
    struct profile_part *parts;    /* profile_tree sorts them by root; profile_each takes them as they are */
    size_t root_count, part_count; /* part_count: of all parts */
    bool pairs;                    /* both amounts count */
};

/* A sink, which writes a profile in some form. `used` is the length of the present stack, as the sink counts it. The
 * profile sets `used` back to remove inner frames. */
struct profile_sink {
    size_t used;
    bool failed; /* no memory: nothing more is written */
    /* adds a frame at the inner end that is only a name */
    void (*push)(struct profile_sink *sink, const char *name);
    /* adds a frame at the inner end that is a function */
    void (*push_function)(struct profile_sink *sink, const struct named_frame *frame, const struct symbol *symbol);
    /* writes the stack with amounts that are not all 0 */
    void (*put)(struct profile_sink *sink, const uint64_t amounts[2]);
};

/* The limits below which stacks are merged: they are too small, or too deep, to be seen. */
struct profile_limits {
    uint64_t least; /* of both amounts together */
    size_t deepest;
};
struct profile_merged {
    uint64_t smaller, deeper, more; /* amounts of "(n smaller)", "(deeper)" and "(n more)" */
    size_t more_count;
};

/* Whether --python leaves the frame out. */
bool profile_each_skips(const struct profile *profile, uint32_t frame);

/* Writes all stacks as one tree. Branches of less than `least` are merged into "(n smaller)" beside larger ones, and
 * frames deeper than `deepest` into "(deeper)". Returns 0, or -1: no memory. */
int profile_tree(struct profile *profile, struct profile_sink *sink, struct profile_limits limits,
                 struct profile_merged *merged);
/* Writes the first `shown` parts, each by itself, and all others as "(n more)". Returns 0, or -1: no memory. */
int profile_each(const struct profile *profile, struct profile_sink *sink, size_t shown, struct profile_merged *merged);

#endif
