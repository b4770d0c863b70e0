/* diff_pprof.c — a comparison as a compressed profile for pprof; see diff.h. It has the form that pprof itself writes
 * with -diff_base: samples of the first file are negative and have the label pprof::base, so that percentages refer to
 * the first file. */
#include "tools/base/complain.h"
#include "tools/diff/diff_rows.h"
#include "tools/export/pprof.h"

#include <stdio.h>

enum { VALUES = 2 /* inuse_objects, inuse_space */ };

struct labels {
    char text[3][2048];
};

static struct pprof_sample sample_of(const struct diff_rows *rows, const struct row *row, struct labels *labels) {
    const struct groups *groups = &rows->diff->groups;
    const uint32_t names[3] = {[PPROF_MODEL] = row->model, [PPROF_NODE] = row->node, [PPROF_RUN] = row->run};
    struct pprof_sample sample = {.side = (int)row->stack_side,
                                  .stack = diff_rows_stack(rows, row),
                                  .root = rows->roots[diff_rows_root(rows, row)],
                                  .nowhere = diff_rows_nowhere(rows, row)};
    for (int i = 0; i < 3; i++)
        if (groups_owner_words(groups, names[i], true, labels->text[i], sizeof labels->text[i]))
            sample.labels[i] = labels->text[i];
    return sample;
}

/* Writes one sample for each file in which the call stack holds memory. Values of the first file are negative. */
static void put_sides(struct pprof *pprof, struct pprof_sample *sample, const struct row_side side[2]) {
    for (int i = 0; i < 2; i++) {
        int64_t sign = i ? 1 : -1;
        sample->labels[PPROF_BASE] = i ? NULL : "true";
        sample->values[0] = sign * (int64_t)side[i].live_blocks;
        sample->values[1] = sign * (int64_t)side[i].live_bytes;
        if (sample->values[0] | sample->values[1]) pprof_put(pprof, sample);
    }
}

/* Writes one sample for all rows that --top leaves out. */
static void diff_pprof_put_rest(struct pprof *pprof, const struct diff_rows *rows) {
    struct row_side sum[2] = {{0, 0}, {0, 0}};
    char name[64];
    struct pprof_sample sample = {.side = 1, .nowhere = name};
    snprintf(name, sizeof name, "(%zu more)", rows->count - rows->shown);
    for (size_t i = rows->shown; i < rows->count; i++)
        for (int side = 0; side < 2; side++) {
            sum[side].live_bytes += rows->rows[i]->side[side].live_bytes;
            sum[side].live_blocks += rows->rows[i]->side[side].live_blocks;
        }
    put_sides(pprof, &sample, sum);
}

static int write_rows(const struct diff_rows *rows) {
    static const struct pprof_type types[VALUES] = {{"inuse_objects", "count"}, {"inuse_space", "bytes"}};
    static struct pprof pprof;
    static struct labels labels;
    const struct snap_header *header = &rows->diff->header[1];
    struct pprof_head head = {.header = header,
                              .now = header->end_ns ? header->end_ns : header->taken_ns,
                              .images = {rows->images[0], rows->images[1]},
                              .symbols = {rows->diff->symbols[0], rows->diff->symbols[1]},
                              .types = types,
                              .type_count = VALUES,
                              .chosen = 1,
                              .python = rows->diff->python,
                              .to = stdout};
    if (rows->diff->groups.estimated) head.comment = "Call stacks are estimates from samples.";
    int result = pprof_begin(&pprof, &head);
    for (size_t i = 0; result == 0 && i < rows->shown; i++) {
        struct pprof_sample sample = sample_of(rows, rows->rows[i], &labels);
        put_sides(&pprof, &sample, rows->rows[i]->side);
    }
    if (result == 0 && rows->shown < rows->count) diff_pprof_put_rest(&pprof, rows);
    return pprof_end(&pprof) < 0 ? -1 : result;
}

int diff_pprof(struct diff *diff) {
    struct diff_rows rows;
    int result = diff_rows_begin(&rows, diff);
    if (result == 0) result = write_rows(&rows);
    diff_rows_end(&rows);
    if (result < 0) complain("not enough memory");
    return result < 0 ? EXIT_UNREADABLE : EXIT_FINE;
}
