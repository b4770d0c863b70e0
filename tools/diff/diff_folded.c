/* diff_folded.c — a comparison as folded stacks with two columns, before and after, for differential flame graphs; see
 * diff.h. Stacks that are too small to be seen are merged as in a report. */
#include "tools/base/complain.h"
#include "tools/diff/diff_rows.h"
#include "tools/export/folded.h"
#include "tools/export/report_profile.h"

#include <stdio.h>
#include <stdlib.h>

struct folding {
    struct diff_rows rows;
    struct folded folded;
    struct profile_limits limits;
    struct profile_merged merged;
    bool cut; /* a row had negative bytes; 0 stands for them */
};

/* The bytes of a row in one file; 0 if they are negative, because a column cannot be negative. Only the row
 * GROUPS_REMAINDER (groups.h) can have negative bytes. */
static uint64_t amount_of(struct folding *self, const struct row *row, int side) {
    int64_t bytes = (int64_t)row->side[side].live_bytes;
    self->cut |= bytes < 0;
    return bytes < 0 ? 0 : (uint64_t)bytes;
}

static void diff_folded_add_part(struct folding *self, struct profile *profile, const struct row *row) {
    profile->parts[profile->part_count++] =
        (struct profile_part){.root = diff_rows_root(&self->rows, row),
                              .stack = diff_rows_stack(&self->rows, row),
                              .nowhere = diff_rows_nowhere(&self->rows, row),
                              .amounts = {amount_of(self, row, 0), amount_of(self, row, 1)}};
}

/* Adds one part for all rows that --top leaves out, with the sums of their bytes. */
static void add_rest(struct folding *self, struct profile *profile, const char *name) {
    struct profile_part rest = {.root = self->rows.no_root, .nowhere = name};
    for (size_t i = self->rows.shown; i < self->rows.count; i++)
        for (int side = 0; side < 2; side++) rest.amounts[side] += amount_of(self, self->rows.rows[i], side);
    profile->parts[profile->part_count++] = rest;
    self->merged.more = rest.amounts[0] + rest.amounts[1];
}

static int write_parts(struct folding *self, struct profile *profile) {
    struct profile_merged merged;
    bool all = self->rows.shown < self->rows.count;
    int result = all ? profile_each(profile, &self->folded.sink, profile->part_count, &merged)
                     : profile_tree(profile, &self->folded.sink, self->limits, &merged);
    self->merged.smaller += merged.smaller;
    self->merged.deeper += merged.deeper;
    return result;
}

/* Writes the rows whose stacks are in the image of one side. Rows without a stack are written with side 1. */
static int write_side(struct folding *self, int side, const char *rest) {
    static const struct image none;
    const struct image *image = self->rows.images[side];
    struct profile profile = {.image = image ? image : &none,
                              .symbols = self->rows.diff->symbols[side],
                              .python = self->rows.diff->python,
                              .roots = self->rows.roots,
                              .root_count = self->rows.no_root + 1,
                              .without_frames = self->rows.diff->python ? "(no Python)" : "(call stack unknown)",
                              .pairs = true};
    profile.parts = calloc(self->rows.shown + 1, sizeof *profile.parts);
    if (!profile.parts) return -1;
    for (size_t i = 0; i < self->rows.shown; i++) {
        const struct row *row = self->rows.rows[i];
        if ((diff_rows_stack(&self->rows, row) ? (int)row->stack_side : 1) == side)
            diff_folded_add_part(self, &profile, row);
    }
    if (side == 1 && self->rows.shown < self->rows.count) add_rest(self, &profile, rest);
    int result = write_parts(self, &profile);
    free(profile.parts);
    return result;
}

static int write_sides(struct folding *self) {
    char rest[64];
    uint64_t all = 0;
    self->merged.more_count = self->rows.count - self->rows.shown;
    snprintf(rest, sizeof rest, "(%zu more)", self->merged.more_count);
    for (size_t i = 0; i < self->rows.count; i++)
        all += amount_of(self, self->rows.rows[i], 0) + amount_of(self, self->rows.rows[i], 1);
    self->limits = profile_limits_of(all);
    int result = write_side(self, 1, rest);
    return result == 0 ? write_side(self, 0, rest) : result;
}

int diff_folded(struct diff *diff) {
    struct folding self = {.merged = {0}};
    int result = diff_rows_begin(&self.rows, diff);
    folded_begin(&self.folded, true);
    if (result == 0) result = write_sides(&self);
    folded_end(&self.folded);
    diff_rows_end(&self.rows);
    if (result == 0) profile_tell(self.limits, self.merged, false, "", true, "");
    if (self.cut) complain("the remainder of the estimates is negative, and is left out");
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}
