/* vbars.c — see vbars.h. */
#include "tools/views/vbars.h"

#include "tools/reader/trace_lines.h"

#include <string.h>

static bool is_noted(struct jsontext line, struct jsontext *list) {
    char kind[8];
    struct jsontext value;
    return jsontext_member(line, "kind", &value) && jsontext_string(value, kind, sizeof kind) &&
           strcmp(kind, "VBARS") == 0 && jsontext_member(line, "vbars", list) && list->length && list->at[0] == '[';
}

static uint64_t vbars_number_of(struct jsontext object, const char *name) {
    struct jsontext value;
    uint64_t number;
    return jsontext_member(object, name, &value) && jsontext_number(value, &number) ? number : 0;
}

/* The id of the owner that has the range's memory now: the owner that loaded it, or the model that has adopted that
 * owner. */
static uint64_t owner_of(const struct image *image, struct jsontext object) {
    uint64_t owner = vbars_number_of(object, "owner");
    return owner <= UINT32_MAX ? image_final_owner(image, (uint32_t)owner) : owner;
}

static void read_list(const struct image *image, struct jsontext list, struct vbars *out) {
    struct jsontext value;
    for (size_t next = 0; out->count < VBARS_MOST && jsontext_next(list, &next, NULL, &value);) {
        if (!value.length || value.at[0] != '{') continue;
        struct vbar *vbar = &out->at[out->count++];
        *vbar = (struct vbar){
            .owner = owner_of(image, value),
            .device = vbars_number_of(value, "device"),
            .address = vbars_number_of(value, "address"),
            .bytes = vbars_number_of(value, "bytes"),
            .resident_bytes = vbars_number_of(value, "resident_bytes"),
            .pinned_bytes = vbars_number_of(value, "pinned_bytes"),
        };
    }
}

void vbars_find(const struct image *image, struct vbars *out) {
    struct jsontext list, last = {0}, whole = {0};
    struct trace_line line;
    for (size_t at = 0; trace_lines_next(image, &at, &line);)
        if (is_noted(line.object, &list)) {
            last = list;
            whole = line.object;
        }
    *out = (struct vbars){.known = last.length != 0};
    if (!out->known) return;
    out->omitted = vbars_number_of(whole, "omitted");
    read_list(image, last, out);
}

struct vbars_share vbars_of(const struct vbars *vbars, uint32_t owner) {
    struct vbars_share share = {0};
    for (size_t i = 0; i < vbars->count; i++) {
        if (!owner || vbars->at[i].owner != owner) continue;
        share.bytes += vbars->at[i].bytes;
        share.resident_bytes += vbars->at[i].resident_bytes;
    }
    return share;
}
