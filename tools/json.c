/* json.c — one JSON document, written as it goes; see json.h. */
#include "json.h"

#include <inttypes.h>

/* Length of the well-formed UTF-8 character at s, or 0: no overlong forms, surrogates or values past U+10FFFF. */
static int utf8_length(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (int i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return length;
}

static void quoted(FILE *out, const char *string) {
    const unsigned char *s = (const unsigned char *)string;
    fputc('"', out);
    while (*s) {
        int length = utf8_length(s);
        if (*s == '"' || *s == '\\')
            fprintf(out, "\\%c", *s);
        else if (*s < 0x20 || *s == 0x7f)
            fprintf(out, "\\u%04x", *s);
        else if (!length)
            fputs("\\ufffd", out);
        else
            fwrite(s, 1, (size_t)length, out);
        s += length ? length : 1;
    }
    fputc('"', out);
}

static void member(struct json *json, const char *key) {
    if (json->some) fputc(',', json->out);
    if (json->depth) fprintf(json->out, "\n%*s", 2 * json->depth, "");
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
    json->some = true;
}

static void open_with(struct json *json, const char *key, char bracket) {
    member(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->some = false;
}

static void close_with(struct json *json, char bracket) {
    json->depth--;
    if (json->some) fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->out);
    json->some = true;
}

void json_object(struct json *json, const char *key) { open_with(json, key, '{'); }

void json_array(struct json *json, const char *key) { open_with(json, key, '['); }

void json_end_object(struct json *json) { close_with(json, '}'); }

void json_end_array(struct json *json) { close_with(json, ']'); }

void json_number(struct json *json, const char *key, uint64_t value) {
    member(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void json_signed(struct json *json, const char *key, int64_t value) {
    member(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void json_real(struct json *json, const char *key, double value) {
    member(json, key);
    fprintf(json->out, "%.6f", value);
}

void json_bool(struct json *json, const char *key, bool value) {
    member(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *key) {
    member(json, key);
    fputs("null", json->out);
}

void json_string(struct json *json, const char *key, const char *value) {
    if (!value) {
        json_null(json, key);
        return;
    }
    member(json, key);
    quoted(json->out, value);
}

void json_begin(struct json *json, FILE *out, const char *format) {
    *json = (struct json){.out = out};
    json_object(json, NULL);
    json_string(json, "format", format);
    json_number(json, "version", 1);
}

void json_finish(struct json *json) {
    json_end_object(json);
    fputc('\n', json->out);
}
