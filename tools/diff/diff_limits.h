/* diff_limits.h — limits of a comparison that hold for each owner and each call site.
 * In: both images, one after the other, and views of their device memory. Out: the row that grew most of those that
 * passed a limit. Rows are kept here beside those that are shown, because what is shown may be something else. */
#ifndef MEMSTOW_DIFF_LIMITS_H
#define MEMSTOW_DIFF_LIMITS_H

#include "tools/views/groups.h"
#include "tools/diff/thresholds.h"

enum { DIFF_MODELS, DIFF_NODES, DIFF_SITES, DIFF_LIMITED };

struct diff_limits {
    const struct limits *limits;
    struct groups groups[2][DIFF_LIMITED]; /* of the host, of devices; of sides: 0 where no limit asks for them */
};

/* What passed a limit: NULL and NULL when nothing did. */
struct over {
    const struct limit *limit;
    const struct groups *groups; /* NULL: all memory together */
    const struct row *row;
    const struct finding *finding; /* in place of both, where there are suppressions */
    bool cuda;                     /* of devices */
};

void diff_limits_begin(struct diff_limits *limited, const struct limits *limits, enum measure measure,
                       bool without_runs);
/* 0, or -1: no memory. */
int diff_limits_add(struct diff_limits *limited, const struct image *image, int side, bool cuda);
void diff_limits_passed(const struct diff_limits *limited, struct over *over);
void diff_limits_end(struct diff_limits *limited);

#endif
