/* diff_rows.c — see diff_rows.h. */
#include "tools/diff/diff_rows.h"

#include "tools/base/text.h"
#include "tools/views/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MOST = 1024 };

static int by_change(const void *left, const void *right) {
    const struct row *a = *(const struct row *const *)left, *b = *(const struct row *const *)right;
    uint64_t change = groups_row_change(a), other = groups_row_change(b);
    if (change != other) return change > other ? -1 : 1;
    return a < b ? -1 : a > b;
}

static int find_rows(struct diff_rows *self) {
    const struct groups *groups = &self->diff->groups;
    self->rows = calloc(groups->count + 1, sizeof *self->rows);
    for (size_t i = 0; self->rows && i < groups->count; i++) {
        const struct row_side *side = groups->rows[i].side;
        if (side[0].live_bytes | side[0].live_blocks | side[1].live_bytes | side[1].live_blocks)
            self->rows[self->count++] = &groups->rows[i];
    }
    if (!self->rows) return -1;
    self->shown = self->diff->form_top < self->count ? self->diff->form_top : self->count;
    if (self->shown < self->count) qsort(self->rows, self->count, sizeof *self->rows, by_change);
    return 0;
}

static char *root_of(const struct groups *groups, uint32_t name) {
    struct groups_owner owner;
    char text[NAME_MOST];
    if (!groups_owner_parts(groups, name, &owner)) return strdup("(untagged)");
    const struct snap_owner kind = {.kind = owner.kind};
    snprintf(text, sizeof text, owner.origin_length ? "%s:%.*s (%.*s)" : "%s:%.*s", roster_kind(&kind),
             owner.name_length, owner.name, owner.origin_length, owner.origin);
    return strdup(text);
}

static int name_roots(struct diff_rows *self) {
    const struct groups *groups = &self->diff->groups;
    self->no_root = groups->name_count;
    self->roots = calloc(groups->name_count + 1, sizeof *self->roots);
    if (!self->roots || self->diff->root == BY_SITE) return self->roots ? 0 : -1;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t name = diff_rows_root(self, self->rows[i]);
        if (!self->roots[name] && !(self->roots[name] = root_of(groups, name))) return -1;
    }
    return 0;
}

/* Opens the image of each side that has the call stack of a shown row. */
static void find_images(struct diff_rows *self) {
    bool sought[2] = {false, false};
    for (size_t i = 0; i < self->shown; i++) {
        const struct row *row = self->rows[i];
        if (!row->stack || sought[row->stack_side]) continue;
        sought[row->stack_side] = true;
        self->images[row->stack_side] = diff_stacks(self->diff, row);
    }
}

int diff_rows_begin(struct diff_rows *self, struct diff *diff) {
    *self = (struct diff_rows){.diff = diff};
    if (find_rows(self) < 0 || name_roots(self) < 0) return -1;
    find_images(self);
    return 0;
}

void diff_rows_end(struct diff_rows *self) {
    for (uint32_t i = 0; self->roots && i < self->no_root; i++) free(self->roots[i]);
    free(self->roots);
    free(self->rows);
}

uint32_t diff_rows_root(const struct diff_rows *self, const struct row *row) {
    switch (self->diff->root) {
    case BY_MODEL:
        return row->model;
    case BY_NODE:
        return row->node;
    case BY_RUN:
        return row->run;
    default:
        return self->no_root;
    }
}

uint32_t diff_rows_stack(const struct diff_rows *self, const struct row *row) {
    return row->stack && self->images[row->stack_side] ? row->stack_node : 0;
}

const char *diff_rows_nowhere(const struct diff_rows *self, const struct row *row) {
    const char *member = groups_member(&self->diff->groups, row);
    if (self->diff->python) return "(no Python)";
    return *member ? text_base_name(member) : "(call stack unknown)";
}
