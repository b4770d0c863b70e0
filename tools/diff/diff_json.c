/* diff_json.c — a comparison as one JSON document; see diff.h. Sizes are bytes. */
#include "tools/diff/diff.h"
#include "tools/views/estimate.h"
#include "tools/diff/known.h"

#include <stdio.h>
#include <string.h>

static void json_side(struct json *json, const char *key, const char *argument, const struct side_total *total) {
    json_object(json, key);
    json_string(json, "argument", argument);
    json_string(json, "name", total->name);
    json_number(json, "pid", total->pid);
    json_number(json, "live_bytes", total->live_bytes);
    json_number(json, "live_blocks", total->live_blocks);
    json_number(json, "peak_bytes", total->peak_bytes);
    json_number(json, "allocated_bytes", total->allocated_bytes);
    json_number(json, "cuda_live_bytes", total->cuda_bytes);
    json_number(json, "cuda_live_blocks", total->cuda_blocks);
    json_number(json, "cuda_peak_bytes", total->cuda_peak);
    json_array(json, "cuda_devices");
    for (size_t i = 0; i < total->device_count; i++) cuda_line_json(json, &total->devices[i]);
    json_end_array(json);
    if (total->sample_bytes)
        json_number(json, "sample_bytes", total->sample_bytes);
    else
        json_null(json, "sample_bytes");
    json_end_object(json);
}

static void json_owner(struct json *json, const char *key, const struct groups *groups, uint32_t name) {
    char text[2048];
    json_string(json, key, groups_owner_words(groups, name, false, text, sizeof text) ? text : NULL);
}

/* Writes the origin of an owner, which tells rows of owners with the same name apart. */
static void json_origin(struct json *json, const char *key, const struct groups *groups, uint32_t name) {
    struct groups_owner owner;
    char text[2048];
    bool known = groups_owner_parts(groups, name, &owner);
    if (known) snprintf(text, sizeof text, "%.*s", owner.origin_length, owner.origin);
    json_string(json, key, known ? text : NULL);
}

static void json_row_stack(struct json *json, struct diff *diff, const struct row *row) {
    int side = (int)row->stack_side;
    const struct image *image = diff_stacks(diff, row);
    if (image && !diff->stacks[side]) diff->stacks[side] = json_stacks_begin(image, diff->symbols[side]);
    if (image && diff->stacks[side]) {
        json_stack(json, diff->stacks[side], row->stack_node, 0);
        return;
    }
    json_array(json, "stack");
    json_end_array(json);
}

static void json_row(struct json *json, struct diff *diff, const struct groups *groups, const struct row *row) {
    bool peak = diff->peak && groups != &diff->cuda;
    char label[2048];
    groups_label(groups, row, label, sizeof label);
    json_object(json, NULL);
    json_string(json, "name", label);
    if (groups->view == BY_MODEL) json_origin(json, "origin", groups, row->model);
    if (groups->view == BY_NODE) json_origin(json, "origin", groups, row->node);
    if (groups->view == BY_SITE) {
        json_owner(json, "model", groups, row->model);
        json_origin(json, "model_origin", groups, row->model);
        json_owner(json, "node", groups, row->node);
        json_origin(json, "node_origin", groups, row->node);
        json_owner(json, "run", groups, row->run);
        json_string(json, "module", *groups_member(groups, row) ? groups_member(groups, row) : NULL);
        json_row_stack(json, diff, row);
    }
    json_signed(json, "growth_bytes", groups_row_growth(row));
    json_signed(json, "growth_blocks", groups_row_growth_blocks(row));
    if (groups->estimated) {
        json_bool(json, "estimated", row->variance > 0);
        json_number(json, "error_bytes", estimate_error(row->variance));
    }
    json_signed(json, peak ? "a_peak_bytes" : "a_live_bytes", (int64_t)row->side[0].live_bytes);
    json_signed(json, peak ? "a_peak_blocks" : "a_live_blocks", (int64_t)row->side[0].live_blocks);
    json_signed(json, peak ? "b_peak_bytes" : "b_live_bytes", (int64_t)row->side[1].live_bytes);
    json_signed(json, peak ? "b_peak_blocks" : "b_live_blocks", (int64_t)row->side[1].live_blocks);
    json_end_object(json);
}

/* The sum of changed rows that are not listed. Together with the listed rows, it gives the growth of all rows. */
static void json_omitted(struct json *json, const char *key, const struct groups *groups, size_t shown) {
    uint64_t bytes = 0, blocks = 0; /* the sums of a damaged file may wrap around */
    for (size_t i = shown; i < groups->ordered; i++) {
        bytes += (uint64_t)groups_row_growth(groups_row(groups, i));
        blocks += (uint64_t)groups_row_growth_blocks(groups_row(groups, i));
    }
    json_object(json, key);
    json_number(json, "rows", groups->ordered - shown);
    json_signed(json, "growth_bytes", (int64_t)bytes);
    json_signed(json, "growth_blocks", (int64_t)blocks);
    json_end_object(json);
}

static void json_rows(struct json *json, struct diff *diff, const struct groups *groups, const char *key,
                      const char *omitted) {
    size_t shown = groups->ordered < diff->top ? groups->ordered : diff->top;
    json_array(json, key);
    for (size_t i = 0; i < shown; i++) json_row(json, diff, groups, groups_row(groups, i));
    json_end_array(json);
    json_omitted(json, omitted, groups, shown);
}

void diff_json_to(struct diff *diff, FILE *to) {
    static struct json json;
    json_begin(&json, to, "memstow-diff");
    json_side(&json, "a", diff->argument[0], &diff->total[0]);
    json_side(&json, "b", diff->argument[1], &diff->total[1]);
    json_signed(&json, "growth_bytes", diff_grown_bytes(diff));
    json_signed(&json, "growth_blocks", diff_grown_blocks(diff));
    json_string(&json, "over", diff->over.limit ? diff->over.limit->text : NULL);
    json_string(&json, "over_name", *diff->over_name ? diff->over_name : NULL);
    json_bool(&json, "over_on_cuda", diff->over.limit && diff->over.cuda);
    json_number(&json, "suppressed_bytes", diff_suppressed(diff));
    known_json(&diff->suppressions, &json);
    json_string(&json, "measure", diff->peak ? "peak" : "live");
    json_string(&json, "by", groups_view_name(diff->groups.view));
    json_rows(&json, diff, &diff->groups, "rows", "rows_omitted");
    json_signed(&json, "cuda_growth_bytes", diff_grown_cuda_bytes(diff));
    json_signed(&json, "cuda_growth_blocks", diff_grown_cuda_blocks(diff));
    json_rows(&json, diff, &diff->cuda, "cuda_rows", "cuda_rows_omitted");
    json_finish(&json);
}

void diff_json(struct diff *diff) { diff_json_to(diff, stdout); }
