/* decisions_json.c — the trace of decisions as one JSON document; see decisions.h. */
#include "tools/decisions/decisions.h"
#include "tools/base/json.h"
#include "tools/views/roster.h"

uint64_t decisions_lines_before(const struct decisions *decisions) {
    return decisions->event_count && decisions->events[0].n ? decisions->events[0].n - 1 : 0;
}

/* Writes the owners of kinds that have policies, because lines of the trace may name them. */
static void json_owners(struct json *json, const struct image *image) {
    json_array(json, "owners");
    for (size_t i = 0; i < image->owner_count; i++) {
        const struct snap_owner *owner = &image->owners[i];
        if (owner->kind != SNAP_OWNER_MODEL && owner->kind != SNAP_OWNER_CUSTOM && owner->kind != SNAP_OWNER_STATE)
            continue;
        json_object(json, NULL);
        json_number(json, "id", owner->id);
        json_string(json, "kind", roster_kind(owner));
        json_string(json, "name", image_string(image, owner->name));
        json_string(json, "origin", image_string(image, owner->origin));
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_faults(struct json *json, const struct decisions *decisions) {
    json_array(json, "faults");
    for (size_t i = 0; i < decisions->fault_count; i++) {
        const struct fault *fault = &decisions->faults[i];
        json_object(json, NULL);
        json_string(json, "fault", decisions_fault_name(fault->kind));
        json_number(json, "line", fault->n);
        json_number(json, "trigger", fault->trigger);
        json_number(json, "owner", fault->owner);
        json_string(json, "text", fault->text);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_lines(struct json *json, const struct decisions *decisions) {
    json_array(json, "lines");
    for (size_t i = 0; i < decisions->event_count; i++)
        json_value(json, NULL, decisions->events[i].line.at, decisions->events[i].line.length);
    json_end_array(json);
}

void decisions_json(const struct decisions *decisions, const struct image *image, FILE *to) {
    static struct json json;
    json_begin(&json, to, "memstow-decisions");
    json_object(&json, "process");
    json_number(&json, "pid", image->header.pid);
    json_string(&json, "name", image->header.name);
    json_number(&json, "start_ns", image->header.start_ns);
    json_number(&json, "start_wall_ns", image->header.start_wall_ns);
    json_end_object(&json);
    json_number(&json, "lines_before", decisions_lines_before(decisions));
    json_number(&json, "lines_lost", image->header.lost[SNAP_LOST_TRACE]);
    json_owners(&json, image);
    json_lines(&json, decisions);
    json_faults(&json, decisions);
    json_finish(&json);
}
