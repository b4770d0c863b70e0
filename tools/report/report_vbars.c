/* report_vbars.c — device memory that comfy-aimdo manages itself, in text and JSON; see report.h. This memory is not in
 * the ledger. comfy-aimdo's own functions report it. */
#include "tools/report/report.h"
#include "tools/views/vbars.h"

void report_text_vbars(const struct report *report) {
    static struct vbars vbars;
    vbars_find(report->image, &vbars);
    if (!vbars.count) return;
    printf("\n  comfy-aimdo manages memory that is not in the ledger. Its latest figures:\n");
    for (size_t i = 0; i < vbars.count; i++) {
        const struct vbar *vbar = &vbars.at[i];
        struct text_line words;
        const char *name = image_owner_words(report->image, vbar->owner, words.s, sizeof words.s);
        printf("  %12s resident of %s on device %llu, %s pinned: %s\n", text_size(vbar->resident_bytes).s,
               text_size(vbar->bytes).s, (unsigned long long)vbar->device, text_size(vbar->pinned_bytes).s,
               name ? TEXT_SAFE(name) : "untagged");
    }
    if (vbars.omitted) printf("  and %s more\n", text_count(vbars.omitted).s);
}

bool report_has_vbars(const struct report *report) {
    static struct vbars vbars;
    vbars_find(report->image, &vbars);
    return vbars.count != 0;
}

void report_json_vbars(struct json *json, const struct report *report) {
    static struct vbars vbars;
    vbars_find(report->image, &vbars);
    if (!vbars.known) {
        json_null(json, "vbars");
        return;
    }
    json_array(json, "vbars");
    for (size_t i = 0; i < vbars.count; i++) {
        const struct vbar *vbar = &vbars.at[i];
        json_object(json, NULL);
        report_json_owner(json, report->image, vbar->owner);
        json_number(json, "device", vbar->device);
        json_number(json, "address", vbar->address);
        json_number(json, "size_bytes", vbar->bytes);
        json_number(json, "resident_bytes", vbar->resident_bytes);
        json_number(json, "pinned_bytes", vbar->pinned_bytes);
        json_end_object(json);
    }
    json_end_array(json);
}
