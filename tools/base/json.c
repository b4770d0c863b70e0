/* json.c — see json.h. */
#include "tools/base/json.h"

#include "preload/shared/utf8.h"

#include <string.h>

/* The length of the text at s that needs no escape in a JSON string. */
static size_t plain_length(const unsigned char *s) {
    size_t length = 0;
    while (s[length] >= 0x20 && s[length] < 0x7f && s[length] != '"' && s[length] != '\\') length++;
    return length;
}

static void json_put(struct json *json, const void *bytes, size_t length) {
    if (length > sizeof json->buffer - json->used) {
        json_flush(json);
        if (length > sizeof json->buffer) {
            fwrite(bytes, 1, length, json->out);
            return;
        }
    }
    memcpy(json->buffer + json->used, bytes, length);
    json->used += length;
}

static void json_put_character(struct json *json, char character) { json_put(json, &character, 1); }

static void json_put_text(struct json *json, const char *text) { json_put(json, text, strlen(text)); }

static void put_quoted_character(struct json *json, const unsigned char *s, size_t length) {
    char escape[8];
    if (*s == '"' || *s == '\\')
        snprintf(escape, sizeof escape, "\\%c", *s);
    else if (*s < 0x20 || *s == 0x7f)
        snprintf(escape, sizeof escape, "\\u%04x", *s);
    else
        snprintf(escape, sizeof escape, "\\ufffd");
    if (length > 1)
        json_put(json, s, length);
    else
        json_put_text(json, escape);
}

static void put_quoted(struct json *json, const char *string) {
    const unsigned char *s = (const unsigned char *)string;
    json_put_character(json, '"');
    while (*s) {
        size_t plain = plain_length(s);
        json_put(json, s, plain);
        s += plain;
        if (!*s) break;
        size_t length = utf8_size((const char *)s, strnlen((const char *)s, UTF8_MOST));
        put_quoted_character(json, s, length);
        s += length ? length : 1;
    }
    json_put_character(json, '"');
}

static void new_line(struct json *json) {
    static const char blanks[] = "\n                                ";
    size_t width = 1 + 2 * (size_t)json->depth;
    if (json->one_line) {
        json_put_character(json, ' ');
        return;
    }
    json_put(json, blanks, width < sizeof blanks ? width : sizeof blanks - 1);
}

static void put_digits(struct json *json, uint64_t value) {
    char text[24], *start = text + sizeof text;
    do *--start = (char)('0' + value % 10);
    while (value /= 10);
    json_put(json, start, (size_t)(text + sizeof text - start));
}

static void json_member(struct json *json, const char *key) {
    if (json->some) json_put_character(json, ',');
    if (json->depth) new_line(json);
    if (key) { /* keys are memstow's own, and need no escapes */
        json_put_character(json, '"');
        json_put_text(json, key);
        json_put(json, "\": ", 3);
    }
    json->some = true;
}

static void open_with(struct json *json, const char *key, char bracket) {
    json_member(json, key);
    json_put_character(json, bracket);
    json->depth++;
    json->some = false;
}

static void close_with(struct json *json, char bracket) {
    json->depth--;
    if (json->some) new_line(json);
    json_put_character(json, bracket);
    json->some = true;
}

void json_flush(struct json *json) {
    fwrite(json->buffer, 1, json->used, json->out);
    json->used = 0;
}

void json_raw(struct json *json, const char *members, size_t length) {
    if (!length) return;
    if (json->some) json_put_character(json, ',');
    json_put(json, members, length);
    json->some = true;
}

void json_object(struct json *json, const char *key) { open_with(json, key, '{'); }

void json_array(struct json *json, const char *key) { open_with(json, key, '['); }

void json_end_object(struct json *json) { close_with(json, '}'); }

void json_end_array(struct json *json) { close_with(json, ']'); }

void json_number(struct json *json, const char *key, uint64_t value) {
    json_member(json, key);
    put_digits(json, value);
}

void json_signed(struct json *json, const char *key, int64_t value) {
    json_member(json, key);
    if (value < 0) json_put_character(json, '-');
    put_digits(json, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_real(struct json *json, const char *key, double value) {
    char text[340];
    snprintf(text, sizeof text, "%.6f", value);
    json_member(json, key);
    json_put_text(json, text);
}

void json_bool(struct json *json, const char *key, bool value) {
    json_member(json, key);
    json_put_text(json, value ? "true" : "false");
}

void json_null(struct json *json, const char *key) {
    json_member(json, key);
    json_put(json, "null", 4);
}

void json_string(struct json *json, const char *key, const char *value) {
    if (!value) {
        json_null(json, key);
        return;
    }
    json_member(json, key);
    put_quoted(json, value);
}

void json_value(struct json *json, const char *key, const char *value, size_t length) {
    json_member(json, key);
    json_put(json, value, length);
}

void json_begin(struct json *json, FILE *out, const char *format) {
    json->out = out;
    json->depth = 0;
    json->some = json->one_line = false;
    json->used = 0;
    json_object(json, NULL);
    json_string(json, "format", format);
    json_number(json, "version", 1);
}

void json_finish(struct json *json) {
    json_end_object(json);
    json_put_character(json, '\n');
    json_flush(json);
}
