/* thresholds.h — judges growth by limits, and by a floor: growth below the floor is always fine.
 * In: limits, and the growth. Out: the verdict, and the limit that was exceeded. Pure. */
#ifndef MEMSTOW_THRESHOLDS_H
#define MEMSTOW_THRESHOLDS_H

#include "tools/diff/limits.h"

enum verdict { VERDICT_FINE, VERDICT_WARNING, VERDICT_FAILED };

/* The first of these that applies decides:
 * - Growth below `pass_under` bytes is fine, whatever the limits say.
 * - Growth that exceeds a limit of its scope fails.
 * - Other growth is a warning if its scope has limits and `pass_under` is not 0. Otherwise it is fine. */
struct thresholds {
    struct limits limits;
    uint64_t pass_under;
};

/* The standard rule, which was made for ComfyUI: growth below 1 MiB is fine, over 5 MiB or 10 % it is too much. Owners
 * have no limit in percent, because a small owner may grow by a large percentage without a cause: Python takes memory
 * in steps of 1 MiB, and each step counts for the owner that happens to need memory at this moment. */
struct thresholds thresholds_standard(void);

/* `passed`: the limit that leads to VERDICT_FAILED, else NULL. */
enum verdict thresholds_judge(const struct thresholds *thresholds, enum limit_scope scope, struct growth growth,
                              const struct limit **passed);

#endif
