/* report_owner.c — the owners of a tag, and the id and name of an owner, in the JSON of a report; see report.h. */
#include "tools/report/report.h"

static void json_origin(struct json *json, const char *key, const struct image *image, uint32_t id) {
    const struct snap_owner *owner = image_owner(image, id);
    json_string(json, key, owner ? image_string(image, owner->origin) : NULL);
}

void report_json_tag(struct json *json, const struct image *image, uint32_t id) {
    const struct snap_tag *tag = image_tag(image, id);
    json_string(json, "model", image_owner_name(image, tag->model));
    json_origin(json, "model_origin", image, tag->model);
    json_string(json, "node", image_owner_name(image, tag->node));
    json_origin(json, "node_origin", image, tag->node);
    json_string(json, "run", image_owner_name(image, tag->run));
}

void report_json_owner(struct json *json, const struct image *image, uint64_t id) {
    if (id)
        json_number(json, "owner", id);
    else
        json_null(json, "owner");
    json_string(json, "name", image_owner_name(image, id));
}
