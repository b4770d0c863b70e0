/* profile.h — writes call stacks with their amounts (bytes or blocks) as a profile.
 * In: parts, each with a stack, its owner and one or two amounts. Out: calls of a sink, which writes them in one form.
 * The written amounts always add up to the amounts of all parts. */
#ifndef MEMSTOW_PROFILE_H
#define MEMSTOW_PROFILE_H

#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

/* The amounts of one stack. A report has one amount; a comparison has two, before and after. */
struct profile_part {
    uint32_t root, stack; /* root: index of the owner's name; stack 0: none was recorded */
    const char *nowhere;  /* the frame to show if the stack has no frames */
    uint64_t amounts[2];
};

struct profile {
    const struct image *image;
    struct symbols *symbols;
    bool python;                /* true: native frames and Python's import machinery are left out */
    char *const *roots;         /* names of outermost frames; a NULL name: no such frame */
    const char *without_frames; /* the frame to show if all frames of a stack are left out */
    struct profile_part *parts; /* profile_tree sorts them by root; profile_each takes them as they are */
    size_t root_count, part_count;
    bool pairs; /* both amounts count; false: only the first */
};

/* A sink writes a profile in one form. `used` is the length of the present stack, in a unit of the sink's own.
 * To remove inner frames, the profile sets `used` back to an earlier value. */
struct profile_sink {
    size_t used;
    bool failed; /* no memory: nothing more is written */
    /* adds an innermost frame that is only a name */
    void (*push)(struct profile_sink *sink, const char *name);
    /* adds an innermost frame that is a function */
    void (*push_function)(struct profile_sink *sink, const struct named_frame *frame, const struct symbol *symbol);
    /* writes the present stack with its amounts, which are not both 0 */
    void (*put)(struct profile_sink *sink, const uint64_t amounts[2]);
};

/* Branches with less than `least`, and frames deeper than `deepest`, are merged: nobody could see them in a picture. */
struct profile_limits {
    uint64_t least; /* a branch is shown if the sum of its two amounts is at least this */
    size_t deepest;
};
struct profile_merged {
    uint64_t smaller, deeper, more; /* amounts of "(n smaller)", "(deeper)" and "(n more)" */
    size_t more_count;              /* number of stacks in "(n more)" */
};

/* Whether --python leaves the frame out. */
bool profile_each_skips(const struct profile *profile, uint32_t frame);

/* Writes all stacks as one tree. Branches of less than `least` are merged into a frame "(n smaller)" beside the
 * larger branches. Frames deeper than `deepest` are merged into a frame "(deeper)". Returns 0, or -1: no memory. */
int profile_tree(struct profile *profile, struct profile_sink *sink, struct profile_limits limits,
                 struct profile_merged *merged);
/* Writes the first `shown` parts, each by itself, and all others as "(n more)". Returns 0, or -1: no memory. */
int profile_each(const struct profile *profile, struct profile_sink *sink, size_t shown, struct profile_merged *merged);

#endif
