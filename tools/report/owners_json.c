/* owners_json.c — see owners_json.h. Sizes are bytes. */
#include "tools/report/owners_json.h"
#include "tools/views/cuda_devices.h"
#include "tools/base/json.h"
#include "tools/views/vbars.h"

static void json_row(struct json *json, const struct image *image, const struct vbars *vbars,
                     const struct roster_row *row) {
    const struct snap_owner *owner = row->owner;
    const struct roster_stowed stowed = roster_stowed(owner, row->live_bytes, row->cuda_bytes);
    const struct vbars_share managed = vbars_of(vbars, owner->id);
    const struct roster_moving moving = roster_moving(image, owner);
    json_object(json, NULL);
    json_number(json, "id", owner->id);
    json_string(json, "kind", roster_kind(owner));
    json_string(json, "name", image_string(image, owner->name));
    json_string(json, "origin", image_string(image, owner->origin));
    json_string(json, "policy", roster_policy(owner));
    json_signed(json, "priority", owner->priority);
    json_string(json, "state", roster_state(owner));
    json_string(json, "outcome", roster_outcome(owner));
    if (owner->adopted_by)
        json_number(json, "adopted_by", owner->adopted_by);
    else
        json_null(json, "adopted_by");
    json_number(json, "live_bytes", row->live_bytes);
    json_number(json, "live_blocks", row->live_blocks);
    json_number(json, "stowed_bytes", stowed.in_files + stowed.of_devices);
    json_number(json, "device_stowed_bytes", stowed.of_devices);
    json_string(json, "moving", !moving.now ? NULL : moving.out ? "out" : "back");
    json_number(json, "moved_bytes", moving.moved);
    json_number(json, "to_move_bytes", moving.wanted);
    json_number(json, "cuda_bytes", row->cuda_bytes);
    json_number(json, "cuda_blocks", row->cuda_blocks);
    json_number(json, "vbar_bytes", managed.bytes);
    json_number(json, "vbar_resident_bytes", managed.resident_bytes);
    json_end_object(json);
}

void owners_json(const struct roster *roster, const struct image *image, FILE *to) {
    static struct json json;
    static struct vbars vbars;
    vbars_find(image, &vbars);
    json_begin(&json, to, "memstow-owners");
    json_object(&json, "process");
    json_number(&json, "pid", image->header.pid);
    json_string(&json, "name", image->header.name);
    json_bool(&json, "running", image->running);
    json_end_object(&json);
    json_number(&json, "live_bytes", roster->live_bytes);
    json_number(&json, "untagged_bytes", roster->untagged.live_bytes);
    json_number(&json, "cuda_bytes", roster->cuda_bytes);
    json_number(&json, "untagged_cuda_bytes", roster->untagged.cuda_bytes);
    json_array(&json, "cuda_devices");
    for (size_t i = 0; i < image->cuda.device_count; i++) {
        struct cuda_line line;
        if (cuda_line_of(image, i, &line)) cuda_line_json(&json, &line);
    }
    json_end_array(&json);
    json_array(&json, "owners");
    for (size_t i = 0; i < roster->count; i++) json_row(&json, image, &vbars, &roster->rows[i]);
    json_end_array(&json);
    json_finish(&json);
}
