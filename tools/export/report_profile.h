/* report_profile.h — the call stacks of a report as a profile, as the options ask for them.
 * In: an image, options, and the owners of its stacks as outermost frames. Out: the frames that are left out; a frame
 * for a stack without frames; and the parts that a profile is written from. */
#ifndef MEMSTOW_REPORT_PROFILE_H
#define MEMSTOW_REPORT_PROFILE_H

#include "tools/export/profile.h"
#include "tools/export/roots.h"

/* The frame of a stack without frames: "libx.so", "(call stack unknown)" or "(no Python)". */
const char *report_no_frames(const struct report *report, uint32_t module);

/* Writes the sites of the report into the sink, in its measure, and says on standard error what it merges. `what` is
 * the name of the profile in that line; "": the form has only one profile. Branches with less than 1/2000 of all memory
 * (half a pixel of 1,000) are merged, and so are frames more than a thousand deep, unless --min or --top says
 * otherwise. Returns 0, or -1: no memory. */
int report_profile(const struct report *report, const struct roots *roots, struct profile_sink *sink, const char *what);

/* As report_profile, with blocks instead of bytes. Here, too, --min=0 merges nothing. Other values of --min are bytes,
 * so they are ignored. */
int report_profile_blocks(const struct report *report, const struct roots *roots, struct profile_sink *sink,
                          const char *what);

/* The limits for frames that are too small or too deep to be seen. `all`: the sum of everything that is shown. */
struct profile_limits profile_limits_of(uint64_t all);
/* Says on standard error what was merged. `what`: the name of the profile, or ""; `is_share`: limits.least is the share
 * of profile_limits_of; `all_of_it`: how to see everything, or "". */
void profile_tell(struct profile_limits limits, struct profile_merged merged, bool blocks, const char *what,
                  bool is_share, const char *all_of_it);

#endif
