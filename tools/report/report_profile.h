/* report_profile.h — what --folded and --pprof have in common: the frames of a call stack as they were asked for.
 * In: an image, and what was asked for. Out: whose a stack is, as its outermost frame, "model:UNET (wan.safetensors)";
 * which frames are left out; and what stands for a stack without any. */
#ifndef MEMSTOW_REPORT_PROFILE_H
#define MEMSTOW_REPORT_PROFILE_H

#include "tools/report/report.h"

/* For each tag the number of its root; owners of the same name and origin have one. Unless model, node or run was asked
 * for there is one, whose name is NULL. */
struct roots {
    char **names;
    uint32_t *of_tag;
    size_t count, tags;
};

/* 0, or -1: no memory. */
int roots_make(struct roots *roots, const struct report *report);
void roots_clear(struct roots *roots);
uint32_t roots_of(const struct roots *roots, uint32_t tag);

/* With --python: native frames, and Python's import machinery. */
bool report_skips_frame(const struct report *report, uint32_t frame);
/* "libx.so", "(call stack unknown)" or "(no Python)". */
const char *report_no_frames(const struct report *report, uint32_t module);

#endif
