/* diff_limits.c — see diff_limits.h. */
#include "tools/diff/diff_limits.h"
#include "tools/views/estimate.h"

#include <string.h>

static const struct {
    enum view view;
    enum limit_scope scope;
} limited_views[DIFF_LIMITED] = {{BY_MODEL, LIMIT_OWNER}, {BY_NODE, LIMIT_OWNER}, {BY_SITE, LIMIT_SITE}};

void diff_limits_begin(struct diff_limits *limited, const struct limits *limits, enum measure measure,
                       bool without_runs) {
    *limited = (struct diff_limits){.limits = limits};
    for (int i = 0; i < 2 * DIFF_LIMITED; i++) {
        int cuda = i / DIFF_LIMITED, what = i % DIFF_LIMITED;
        if (!limits_have(limits, limited_views[what].scope)) continue;
        groups_begin(&limited->groups[cuda][what], limited_views[what].view, 2);
        limited->groups[cuda][what].without_runs = without_runs;
        limited->groups[cuda][what].measure = cuda ? MEASURE_LIVE : measure;
    }
}

int diff_limits_add(struct diff_limits *limited, const struct image *image, int side, bool cuda) {
    int result = 0;
    for (int i = 0; i < DIFF_LIMITED && result == 0; i++)
        if (limited->groups[cuda][i].sides) result = groups_add(&limited->groups[cuda][i], image, side);
    return result;
}

/* Whether limits for each owner or each call site apply to the row. Untagged memory is not an owner, and the row
 * GROUPS_REMAINDER (groups.h) is not a call site. */
static bool is_meant(const struct groups *groups, const struct row *row) {
    if (groups->view == BY_SITE) return strcmp(groups_member(groups, row), GROUPS_REMAINDER) != 0;
    return row->model || row->node;
}

/* Returns the growth. If the bytes are an estimate, returns the growth minus twice the standard error. Returns
 * INT64_MIN if a damaged file makes the subtraction overflow. */
static int64_t growth_beyond_error(const struct row *row) {
    int64_t growth = groups_row_growth(row), error = row->variance ? (int64_t)estimate_error(row->variance) : 0;
    if (__builtin_sub_overflow(growth, error, &growth) || __builtin_sub_overflow(growth, error, &growth))
        return INT64_MIN;
    return growth;
}

static struct growth growth_of(const struct row *row) {
    int64_t before = (int64_t)row->side[0].live_bytes;
    return (struct growth){growth_beyond_error(row), groups_row_growth_blocks(row), before > 0 ? (uint64_t)before : 0};
}

static void limit_look(const struct diff_limits *limited, int what, bool cuda, struct over *over) {
    const struct groups *groups = &limited->groups[cuda][what];
    for (size_t i = 0; i < groups->count; i++) {
        const struct row *row = &groups->rows[i];
        if (!is_meant(groups, row) || (over->row && groups_row_growth(row) <= groups_row_growth(over->row))) continue;
        const struct limit *limit = limits_passed(limited->limits, limited_views[what].scope, growth_of(row));
        if (limit) *over = (struct over){.limit = limit, .groups = groups, .row = row, .cuda = cuda};
    }
}

void diff_limits_passed(const struct diff_limits *limited, struct over *over) {
    *over = (struct over){.limit = NULL};
    for (int i = 0; i < 2 * DIFF_LIMITED; i++)
        if (limited->groups[i / DIFF_LIMITED][i % DIFF_LIMITED].sides)
            limit_look(limited, i % DIFF_LIMITED, i >= DIFF_LIMITED, over);
}

void diff_limits_end(struct diff_limits *limited) {
    for (int i = 0; i < 2 * DIFF_LIMITED; i++)
        if (limited->groups[i / DIFF_LIMITED][i % DIFF_LIMITED].sides)
            groups_end(&limited->groups[i / DIFF_LIMITED][i % DIFF_LIMITED]);
}
