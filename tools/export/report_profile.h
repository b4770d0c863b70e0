/* report_profile.h — writes the call stacks of a report as a profile, as the options ask.
 * In: a report with its options, and names of owners as outermost frames (roots.h). Out: calls of a sink (profile.h),
 * and on standard error a note of merged stacks. */
#ifndef MEMSTOW_REPORT_PROFILE_H
#define MEMSTOW_REPORT_PROFILE_H

#include "tools/export/profile.h"
#include "tools/export/roots.h"

/* If a stack has no frames, this text is shown in their place. Examples: "libx.so", "(call stack unknown)". */
const char *report_no_frames(const struct report *report, uint32_t module);

/* Writes the sites of the report into the sink, in the report's measure, and says on standard error which branches it
 * merges. `what` is the name of the profile in this message; "": the form has only one profile. Without --min and
 * --top, branches with less than 1/2000 of all memory (half a pixel in a picture of 1,000 pixels) are merged, and so
 * are frames more than a thousand deep. Returns 0, or -1: no memory. */
int report_profile(const struct report *report, const struct roots *roots, struct profile_sink *sink, const char *what);

/* As report_profile(), with numbers of blocks instead of bytes. --min=0 merges nothing. Other values of --min are
 * bytes, so they are ignored. */
int report_profile_blocks(const struct report *report, const struct roots *roots, struct profile_sink *sink,
                          const char *what);

/* Returns the standard limits. What they merge is too small or too deep to be seen in a picture. `all`: the sum of all
 * amounts. */
struct profile_limits profile_limits_of(uint64_t all);
/* Says on standard error which branches were merged. `what`: the name of the profile, or "". `is_share`: limits.least
 * came from profile_limits_of(), so it is a share of all amounts. `all_of_it`: a text that says how to see everything,
 * or "". */
void profile_tell(struct profile_limits limits, struct profile_merged merged, bool blocks, const char *what,
                  bool is_share, const char *all_of_it);

#endif
