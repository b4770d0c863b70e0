/* decisions_json.c — writes the whole trace of decisions, or only its triggers with lines behind a given line, as one
 * JSON document; see decisions.h. */
#include "tools/decisions/decisions.h"
#include "tools/base/json.h"
#include "tools/views/roster.h"

#include <stdlib.h>
#include <string.h>

/* Limits for a part of a trace: the bytes of all lines and names, and the bytes of one name. The number of faults is
 * limited elsewhere (decisions_check.c). */
enum { PART_BYTES = 1 << 20, PART_NAME = 300 };

/* What a document has of a trace. */
struct part {
    const struct decisions *decisions;
    const struct image *image;
    uint64_t after;         /* only triggers with a line behind this one are written */
    uint8_t *shown;         /* by trigger; 1: its lines are written. NULL: all lines are written */
    uint8_t *named;         /* by owner of the image; 1: a written line names the owner. NULL: all owners are written */
    size_t *bytes;          /* by trigger: the size of its lines, and of the names in them */
    size_t count, left_out; /* how many triggers have a line behind `after`; how many of these are left out */
};

uint64_t decisions_lines_before(const struct decisions *decisions) {
    return decisions->event_count && decisions->events[0].n ? decisions->events[0].n - 1 : 0;
}

uint64_t decisions_last_line(const struct decisions *decisions) {
    return decisions->event_count ? decisions->events[decisions->event_count - 1].n : 0;
}

static bool part_has_event(const struct part *part, const struct event *event) {
    return !part->shown || (event->trigger && part->shown[event->trigger - 1]);
}

/* Whether the owner is written. Without `named`, owners of all kinds that can have policies are written, because lines
 * of the trace name only such owners. */
static bool part_has_owner(const struct part *part, size_t index) {
    uint32_t kind = part->image->owners[index].kind;
    if (part->named) return part->named[index];
    return kind == SNAP_OWNER_MODEL || kind == SNAP_OWNER_CUSTOM || kind == SNAP_OWNER_STATE;
}

static void json_name(struct json *json, const struct part *part, const char *key, const char *name) {
    char cut[PART_NAME + 1];
    if (part->named) snprintf(cut, sizeof cut, "%s", name);
    json_string(json, key, part->named ? cut : name);
}

static void json_owners(struct json *json, const struct part *part) {
    const struct image *image = part->image;
    json_array(json, "owners");
    for (size_t i = 0; i < image->owner_count; i++) {
        const struct snap_owner *owner = &image->owners[i];
        if (!part_has_owner(part, i)) continue;
        json_object(json, NULL);
        json_number(json, "id", owner->id);
        json_string(json, "kind", roster_kind(owner));
        json_name(json, part, "name", image_string(image, owner->name));
        json_name(json, part, "origin", image_string(image, owner->origin));
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_faults(struct json *json, const struct part *part) {
    json_array(json, "faults");
    for (size_t i = 0; i < part->decisions->fault_count; i++) {
        const struct fault *fault = &part->decisions->faults[i];
        if (part->shown && fault->n <= part->after) continue;
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

static void json_lines(struct json *json, const struct part *part) {
    const struct decisions *decisions = part->decisions;
    json_array(json, "lines");
    for (size_t i = 0; i < decisions->event_count; i++)
        if (part_has_event(part, &decisions->events[i]))
            json_value(json, NULL, decisions->events[i].line.at, decisions->events[i].line.length);
    json_end_array(json);
}

static void json_part(const struct part *part, FILE *to) {
    static struct json json;
    const struct snap_header *header = &part->image->header;
    json_begin(&json, to, "memstow-decisions");
    json_object(&json, "process");
    json_number(&json, "pid", header->pid);
    json_string(&json, "name", header->name);
    json_number(&json, "start_ns", header->start_ns);
    json_number(&json, "start_wall_ns", header->start_wall_ns);
    json_end_object(&json);
    json_number(&json, "lines_before", decisions_lines_before(part->decisions));
    json_number(&json, "lines_lost", header->lost[SNAP_LOST_TRACE]);
    if (part->shown) json_number(&json, "after_line", part->after);
    if (part->shown) json_number(&json, "triggers", part->decisions->trigger_count);
    if (part->shown) json_number(&json, "triggers_after", part->count);
    if (part->shown) json_number(&json, "triggers_omitted", part->left_out);
    json_owners(&json, part);
    json_lines(&json, part);
    json_faults(&json, part);
    json_finish(&json);
}

void decisions_json(const struct decisions *decisions, const struct image *image, FILE *to) {
    const struct part all = {.decisions = decisions, .image = image};
    json_part(&all, to);
}

static const struct snap_owner *owner_of(const struct part *part, const struct event *event) {
    uint64_t id = event->numbers[NUMBER_OWNER];
    return id <= UINT32_MAX ? image_owner(part->image, (uint32_t)id) : NULL;
}

/* The bytes of a line, plus the bytes of its owner's name and origin before JSON escapes them. */
static size_t bytes_of(const struct part *part, const struct event *event) {
    const struct snap_owner *owner = owner_of(part, event);
    size_t bytes = event->line.length;
    if (owner) bytes += strnlen(image_string(part->image, owner->name), PART_NAME);
    return owner ? bytes + strnlen(image_string(part->image, owner->origin), PART_NAME) : bytes;
}

/* Marks the triggers that have a line behind part->after. Only lines that memstow writes while a trigger runs count. A
 * line such as HELD names a trigger, too, but the program writes it after the trigger is over. */
static void find_triggers(struct part *part) {
    for (size_t i = 0; i < part->decisions->event_count; i++) {
        const struct event *event = &part->decisions->events[i];
        bool ours = event->kind >= EVENT_TRIGGER && event->kind <= EVENT_REMAINING;
        if (!event->trigger) continue;
        part->bytes[event->trigger - 1] += bytes_of(part, event);
        if (ours && event->n > part->after) part->shown[event->trigger - 1] = 1;
    }
}

/* Leaves out the earliest triggers if all triggers would take too many bytes. The last trigger always stays. */
static void limit_triggers(struct part *part) {
    size_t left = PART_BYTES;
    for (size_t i = part->decisions->trigger_count; i-- > 0;) {
        if (!part->shown[i]) continue;
        if (part->count++ && part->bytes[i] > left) left = 0;
        if (left == 0) part->shown[i] = 0;
        if (left == 0) part->left_out++;
        left -= part->bytes[i] < left ? part->bytes[i] : left;
    }
}

static void find_owners(struct part *part) {
    for (size_t i = 0; i < part->decisions->event_count; i++) {
        const struct event *event = &part->decisions->events[i];
        const struct snap_owner *owner = owner_of(part, event);
        if (owner && part_has_event(part, event)) part->named[owner - part->image->owners] = 1;
    }
}

int decisions_json_after(const struct decisions *decisions, const struct image *image, uint64_t after, FILE *to) {
    struct part part = {.decisions = decisions,
                        .image = image,
                        .after = after,
                        .shown = calloc(decisions->trigger_count + 1, 1),
                        .named = calloc(image->owner_count + 1, 1),
                        .bytes = calloc(decisions->trigger_count + 1, sizeof *part.bytes)};
    bool done = part.shown && part.named && part.bytes;
    if (done) {
        find_triggers(&part);
        limit_triggers(&part);
        find_owners(&part);
        json_part(&part, to);
    }
    free(part.shown);
    free(part.named);
    free(part.bytes);
    return done ? 0 : -1;
}
