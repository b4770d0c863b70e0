/* check_json.c — a verdict as one JSON document; see check.h. Sizes are bytes. */
#include "tools/check/check.h"
#include "tools/base/json.h"

static void json_range(struct json *json, const char *key, const struct range ranges[2]) {
    json_object(json, key);
    json_number(json, "low_bytes", ranges[0].low);
    json_number(json, "high_bytes", ranges[0].high);
    json_number(json, "low_blocks", ranges[1].low);
    json_number(json, "high_blocks", ranges[1].high);
    json_end_object(json);
}

static void json_parts(struct json *json, const struct figure *figure) {
    char text[SCAN_STRING_MOST];
    const char *next = figure_name(figure);
    enum figure_part part = PART_FRAME;
    if (figure->kind == FIGURE_TOTAL) return;
    json_array(json, "name_parts");
    while (figure_part(&next, &part, text, sizeof text)) json_string(json, NULL, text);
    json_end_array(json);
}

static void json_finding(struct json *json, const struct finding *finding) {
    static const char *const kinds[] = {"total", "owner", "site"}, *const verdicts[] = {"fine", "warning", "over"};
    char name[FIGURE_KEY_MOST];
    figure_words(finding->figure, name, sizeof name);
    json_object(json, NULL);
    json_string(json, "kind", kinds[finding->figure->kind]);
    json_string(json, "place", finding->figure->cuda ? "cuda" : "host");
    json_string(json, "name", name);
    json_parts(json, finding->figure);
    json_string(json, "verdict", verdicts[finding->verdict]);
    json_string(json, "over", finding->limit ? finding->limit->text : NULL);
    json_string(json, "below_floor", finding->below_floor ? finding->below_floor->text : NULL);
    json_signed(json, "growth_bytes", finding->growth.bytes);
    json_signed(json, "growth_blocks", finding->growth.blocks);
    json_number(json, "suppressed_bytes", (uint64_t)finding->suppressed_bytes);
    if (finding->suppression)
        json_number(json, "suppressed_by_line", finding->suppression->line);
    else
        json_null(json, "suppressed_by_line");
    json_bool(json, "new", finding->is_new);
    json_range(json, "before", finding->before);
    json_range(json, "now", finding->now);
    json_string(json, "file", finding->figure->file);
    if (finding->figure->line)
        json_number(json, "line", finding->figure->line);
    else
        json_null(json, "line");
    json_end_object(json);
}

void check_json(const struct check *check, FILE *to) {
    static struct json json;
    json_begin(&json, to, "memstow-check");
    json_string(&json, "result", check_result(check));
    json_string(&json, "measure", check->now.peak ? "peak" : "live");
    json_string(&json, "baseline", check->baseline);
    json_number(&json, "baseline_runs", check->before.runs);
    json_number(&json, "runs", check->runs_done);
    json_number(&json, "runs_at_most", check->runs);
    json_number(&json, "warm_up", check->warm_up);
    json_number(&json, "pass_under_bytes", check->thresholds.pass_under);
    json_number(&json, "over", check->gate.over);
    json_number(&json, "warnings", check->gate.warnings);
    json_number(&json, "suppressed", check->gate.suppressed);
    json_bool(&json, "cuda_left_out", gate_leaves_out_cuda(&check->gate));
    json_bool(&json, "origins_left_out", gate_leaves_out_origins(&check->gate));
    json_array(&json, "findings");
    for (size_t i = 0; i < check->gate.count; i++) json_finding(&json, &check->gate.list[i]);
    json_end_array(&json);
    known_json(&check->suppressions, &json);
    json_finish(&json);
}
