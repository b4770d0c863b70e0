/* body.c — see body.h. */
#include "tools/push/body.h"
#include "tools/base/json.h"
#include "tools/base/text.h"

#include <stdlib.h>

const char *body_path(enum body_form form) {
    return form == BODY_PARCA ? "/profiles/writeraw" : "/push.v1.PusherService/Push";
}

/* Bytes as a string of JSON: base64 in quotes. NULL: no memory. */
static char *body_letters(const void *bytes, size_t length, size_t *written) {
    *written = TEXT_BASE64(length) + 2;
    char *text = malloc(*written);
    if (!text) return NULL;
    text_base64(text + 1, bytes, length);
    text[0] = text[*written - 1] = '"';
    return text;
}

static void body_labels(struct json *json, enum body_form form, const struct body_label *labels, size_t count) {
    if (form == BODY_PARCA) json_object(json, "labels"); /* a LabelSet */
    json_array(json, "labels");
    for (size_t i = 0; i < count; i++) {
        json_object(json, NULL);
        json_string(json, "name", labels[i].name);
        json_string(json, "value", labels[i].value);
        json_end_object(json);
    }
    json_end_array(json);
    if (form == BODY_PARCA) json_end_object(json);
}

static void body_sample(struct json *json, const char *letters, size_t length) {
    json_array(json, "samples");
    json_object(json, NULL);
    json_value(json, "rawProfile", letters, length);
    json_end_object(json);
    json_end_array(json);
}

int body_write(struct body *body, enum body_form form, const struct body_label *labels, size_t count,
               const void *profile, size_t length) {
    static struct json json;
    size_t used;
    char *letters = body_letters(profile, length, &used);
    FILE *to = letters ? open_memstream(&body->text, &body->length) : NULL;
    if (to) {
        json = (struct json){.out = to};
        json_object(&json, NULL);
        json_array(&json, "series");
        json_object(&json, NULL);
        body_labels(&json, form, labels, count);
        body_sample(&json, letters, used);
        json_end_object(&json);
        json_end_array(&json);
        json_end_object(&json);
        json_flush(&json);
    }
    free(letters);
    return to && fclose(to) == 0 ? 0 : -1;
}
