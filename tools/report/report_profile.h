/* report_profile.h — the common part of --folded and --pprof: the frames of a call stack, as the options ask for them.
 * In: an image and options. Out: the owner of a stack as its outermost frame, "model:UNET (wan.safetensors)"; the
 * frames that are left out; and a frame for a stack without frames. */
#ifndef MEMSTOW_REPORT_PROFILE_H
#define MEMSTOW_REPORT_PROFILE_H

#include "tools/report/report.h"

/* The number of each tag's root. Owners of the same name and origin share a root. Unless model, node or run was asked
 * for, there is only one root, whose name is NULL. */
struct roots {
    char **names;
    uint32_t *of_tag;
    size_t count, tags;
};

/* Returns 0, or -1: no memory. */
int roots_make(struct roots *roots, const struct report *report);
void roots_clear(struct roots *roots);
uint32_t roots_of(const struct roots *roots, uint32_t tag);

/* With --python: skips native frames, and frames of Python's import machinery. */
bool report_skips_frame(const struct report *report, uint32_t frame);
/* The frame of a stack without frames: "libx.so", "(call stack unknown)" or "(no Python)". */
const char *report_no_frames(const struct report *report, uint32_t module);

#endif
