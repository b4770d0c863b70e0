/* diff_limits.h — limits of a comparison for each owner and each call site.
 * In: the two images of the comparison, one after the other, and views of their device memory. Out: the row that grew
 * most among the rows that passed a limit. These rows are separate from the rows that are shown, which may be of
 * another view. */
#ifndef MEMSTOW_DIFF_LIMITS_H
#define MEMSTOW_DIFF_LIMITS_H

#include "tools/views/groups.h"
#include "tools/diff/thresholds.h"

enum { DIFF_MODELS, DIFF_NODES, DIFF_SITES, DIFF_LIMITED };

struct diff_limits {
    const struct limits *limits;
    /* groups[0]: the host; groups[1]: devices. Second index: DIFF_MODELS and so on. If no limit needs a
     * group, the field `sides` of this group is 0. */
    struct groups groups[2][DIFF_LIMITED];
};

/* The limit that was passed, and the row or finding that passed it. All pointers are NULL if no limit was passed. */
struct over {
    const struct limit *limit;
    const struct groups *groups; /* NULL: all memory together */
    const struct row *row;
    const struct finding *finding; /* with suppressions: used instead of groups and row */
    bool cuda;                     /* the row is memory of CUDA devices */
};

/* without_runs: the names of runs do not tell rows apart (groups.h). */
void diff_limits_begin(struct diff_limits *limited, const struct limits *limits, enum measure measure,
                       bool without_runs);
/* Adds one image to the groups that the limits need. `cuda`: the image is a view of device memory. Returns 0, or -1: no
 * memory. */
int diff_limits_add(struct diff_limits *limited, const struct image *image, int side, bool cuda);
/* Finds the row that grew most among the rows that exceeded a limit. If no row exceeded a limit, over->limit is
 * NULL. */
void diff_limits_passed(const struct diff_limits *limited, struct over *over);
void diff_limits_end(struct diff_limits *limited);

#endif
