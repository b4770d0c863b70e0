/* leaks_json.c — leaks as one JSON document; see leaks.h. Sizes are bytes. */
#include "tools/symbols/json_stack.h"
#include "tools/leaks/leaks.h"

#include <stdlib.h>
#include <string.h>

static void json_name(struct json *json, const char *key, const struct leaks *self, uint32_t name) {
    json_string(json, key, name ? self->sites->names[name]->name : NULL);
}

static void json_origin(struct json *json, const struct leaks *self, uint32_t name) {
    json_string(json, "origin", name ? self->sites->names[name]->origin : NULL);
}

static void json_holders_of(struct json *json, const struct leak_holder *holder) {
    struct jsontext value;
    for (size_t next = 0; holder && jsontext_next(holder->holders, &next, NULL, &value);)
        json_value(json, NULL, value.at, value.length);
}

/* Writes the holders of memory: first the package ("held_by") and the variable, class or function in it ("held_at")
 * that are at fault, then the objects that keep the memory. `other`: another holder of some of the memory; NULL: none.
 */
static void json_holders(struct json *json, const struct leak_holder *holder, const struct leak_holder *other) {
    const struct jsontext none = {"null", 4};
    struct jsontext pack = holder && holder->pack.length ? holder->pack : none;
    struct jsontext at = holder && holder->held_at.length ? holder->held_at : none;
    json_value(json, "held_by", pack.at, pack.length);
    json_value(json, "held_at", at.at, at.length);
    json_array(json, "holders");
    json_holders_of(json, holder);
    json_holders_of(json, other);
    json_end_array(json);
}

static void json_no_stack(struct json *json) {
    json_array(json, "stack");
    json_end_array(json);
}

static void json_call_stack(struct json *json, struct json_stacks *stacks, uint32_t stack, uint32_t module) {
    if (stacks)
        json_stack(json, stacks, stack, module);
    else
        json_no_stack(json);
}

/* --- the runs and readings --- */

static void json_runs(struct json *json, const struct leaks *self) {
    const struct leak_sites *sites = self->sites;
    json_object(json, "runs");
    json_number(json, "ended", sites->run_count);
    json_number(json, "warm_up", leak_warm_up(sites->run_count));
    json_number(json, "young", self->left_rule.young);
    json_number(json, "uncollected", self->uncollected);
    json_number(json, "judged", leak_judged(&self->left_rule));
    json_end_object(json);
    json_object(json, "readings");
    json_number(json, "taken", sites->point_count);
    json_number(json, "warm_up", leak_warm_up(sites->point_count));
    json_number(json, "young", self->moved_rule.young);
    json_number(json, "judged", leak_judged(&self->moved_rule));
    json_end_object(json);
}

static void json_head(struct json *json, const struct leaks *self) {
    static const char *const verdicts[] = {"no_leak", "leak", "cannot_tell"};
    const struct leaks_doubt doubt = leaks_doubt(self);
    const struct image *image = self->image;
    json_object(json, "process");
    json_number(json, "pid", image->header.pid);
    json_string(json, "name", image->header.name);
    json_bool(json, "running", image->running);
    json_end_object(json);
    json_bool(json, "ended_in_order", leaks_ended_in_order(self));
    json_number(json, "live_bytes", image->host.live_bytes + image->mapped.live_bytes);
    json_runs(json, self);
    json_number(json, "floor_bytes", self->floor);
    json_bool(json, "sampled", self->sites->sampled);
    json_string(json, "verdict", verdicts[leaks_verdict(self)]);
    json_string(json, "why", *doubt.why ? doubt.why : NULL);
    json_string(json, "advice", *doubt.advice ? doubt.advice : NULL);
    json_number(json, "found", leaks_total(self));
}

/* --- retired owners --- */

static void json_retired_one(struct json *json, const struct leaks *self, struct json_stacks *stacks,
                             const struct leak_retired *retired) {
    const struct leak_name *name = self->sites->names[retired->name];
    json_object(json, NULL);
    json_holders(json, retired->holder, retired->other);
    json_bool(json, "leak", retired->is_leak);
    json_bool(json, "same_cause", retired->is_told || retired->is_same);
    json_string(json, "kind", name->kind == SNAP_OWNER_MODEL ? "model" : "custom");
    json_string(json, "name", name->name);
    json_string(json, "origin", name->origin);
    json_number(json, "owners", retired->owners);
    json_number(json, "live_bytes", retired->live_bytes);
    json_number(json, "live_blocks", retired->live_blocks);
    json_number(json, "allocated_bytes", retired->allocated_bytes);
    json_number(json, "rest_bytes", retired->rest_bytes);
    json_number(json, "runs_since", retired->runs_since);
    json_array(json, "sites");
    for (uint32_t i = 0; i < retired->stack_count; i++) {
        const struct leak_stack *at = &retired->stacks[i];
        json_object(json, NULL);
        json_number(json, "live_bytes", at->live_bytes);
        json_number(json, "live_blocks", at->live_blocks);
        json_call_stack(json, stacks, at->stack, at->module);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* --- a finding --- */

static void json_run_name(struct json *json, const char *key, const struct leaks *self, uint32_t run) {
    json_string(json, key, run == UINT32_MAX ? NULL : leaks_run(self, run));
}

static void json_owner(struct json *json, const struct leaks *self, const struct leak_finding *finding) {
    json_name(json, "model", self, finding->model);
    json_origin(json, self, finding->model);
    json_name(json, "node", self, finding->node);
    json_string(json, "node_origin", finding->node ? self->sites->names[finding->node]->origin : NULL);
}

/* Writes the owner and the figures of each finding that was merged into this one. */
static void json_owners(struct json *json, const struct leaks *self, const struct leak_finding *finding) {
    json_array(json, "parts");
    for (size_t i = 0; i < finding->part_count; i++) {
        const struct leak_finding *part = &self->parts[finding->first_part + i];
        json_object(json, NULL);
        json_owner(json, self, part);
        json_real(json, "bytes_per_run", part->judged.bytes_per_run);
        json_number(json, "live_bytes", part->live_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}

/* --- the curve of a finding --- */

static void add_curve(const struct leak_entries *entries, uint32_t site, int64_t *grown) {
    size_t at = site == LEAK_NO_SITE ? entries->count : leak_entries_first(entries, site);
    for (; at < entries->count && entries->list[at].site == site; at++) {
        const struct leak_change *change = &entries->list[at].change;
        grown[change->point] = leak_sum(grown[change->point], change->bytes);
    }
}

/* The curve of a finding: the change of its bytes, by index of the run or reading. NULL: no memory. The caller frees
 * it. */
static int64_t *sum_curve(const struct leaks *self, const struct leak_finding *finding, size_t points) {
    const struct leak_entries *entries = finding->by_readings ? &self->sites->moved : &self->sites->left;
    int64_t *grown = calloc(points + 1, sizeof *grown);
    if (grown && !finding->part_count) add_curve(entries, finding->site, grown);
    for (size_t i = 0; grown && i < finding->part_count; i++)
        add_curve(entries, self->parts[finding->first_part + i].site, grown);
    return grown;
}

/* Writes the curve as pairs: the index of a run or reading, and the change in bytes. */
static void json_curve(struct json *json, const struct leaks *self, const struct leak_finding *finding) {
    size_t points = finding->by_readings ? self->sites->point_count : self->sites->run_count;
    int64_t *grown = sum_curve(self, finding, points);
    json_array(json, "curve");
    json->one_line = true;
    for (size_t i = 0; grown && i < points; i++) {
        if (!grown[i]) continue;
        json_array(json, NULL);
        json_number(json, NULL, i);
        json_signed(json, NULL, grown[i]);
        json_end_array(json);
    }
    json_end_array(json);
    json->one_line = false;
    free(grown);
}

static void json_finding(struct json *json, const struct leaks *self, struct json_stacks *stacks,
                         const struct leak_finding *finding) {
    const struct leak_judgement *judged = &finding->judged;
    const struct leak_site *site = finding->example == LEAK_NO_SITE ? NULL : &self->sites->list[finding->example];
    json_object(json, NULL);
    json_holders(json, finding->holder, NULL);
    json_owner(json, self, finding);
    json_real(json, "bytes_per_run", judged->bytes_per_run);
    json_real(json, "blocks_per_run", judged->blocks_per_run);
    json_number(json, "live_bytes", finding->live_bytes);
    json_number(json, "live_blocks", finding->live_blocks);
    json_string(json, "confidence", leak_confidence_name(judged->confidence));
    json_bool(json, "monotone", judged->monotone);
    json_number(json, "judged", judged->judged);
    json_number(json, "grew", judged->grew);
    json_string(json, "judged_by", finding->by_readings ? "readings" : "runs");
    json_bool(json, "retired", finding->is_retired);
    json_bool(json, "on_cuda", site && site->on_cuda);
    json_run_name(json, "oldest_run", self, finding->oldest);
    json_run_name(json, "newest_run", self, finding->newest);
    json_owners(json, self, finding);
    json_curve(json, self, finding);
    json_number(json, "stacks", finding->stacks);
    if (site && !self->sites->sampled)
        json_call_stack(json, stacks, site->stack, site->module);
    else
        json_no_stack(json);
    json_end_object(json);
}

static void json_findings(struct json *json, const char *key, const struct leaks *self, struct json_stacks *stacks,
                          const struct leak_finding *list, size_t count, size_t top) {
    json_array(json, key);
    for (size_t i = 0; i < count && i < top; i++) json_finding(json, self, stacks, &list[i]);
    json_end_array(json);
}

/* --- sites that do not leak --- */

static void json_rest(struct json *json, const struct leaks *self) {
    json_object(json, "not_leaks");
    for (int i = 0; i < LEAK_VERDICTS; i++) {
        if (i == LEAK_FOUND || i == LEAK_NOTHING) continue;
        json_object(json, leak_verdict_name((enum leak_verdict)i));
        json_number(json, "sites", self->rest[i].sites);
        json_number(json, "live_bytes", self->rest[i].live_bytes);
        json_end_object(json);
    }
    if (self->measured)
        json_number(json, "allocator_retained_bytes", self->retained);
    else
        json_null(json, "allocator_retained_bytes");
    json_end_object(json);
}

void leaks_json(const struct leaks *self, const struct leaks_view *view, FILE *to) {
    static struct json json;
    struct json_stacks *stacks = view->symbols ? json_stacks_begin(self->image, view->symbols) : NULL;
    json_begin(&json, to, "memstow-leaks");
    json_head(&json, self);
    json_array(&json, "retired");
    for (size_t i = 0; i < self->retired_count && i < view->top; i++)
        json_retired_one(&json, self, stacks, &self->retired[i]);
    json_end_array(&json);
    json_findings(&json, "leaks", self, stacks, self->list, self->count, view->top);
    json_findings(&json, "kept", self, stacks, self->kept, self->kept_count, view->top);
    json_rest(&json, self);
    json_finish(&json);
    json_stacks_end(stacks);
}
