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

/* Length of the run at s that stands for itself in a JSON string. */
static size_t plain_length(const unsigned char *s) {
    size_t length = 0;
    while (s[length] >= 0x20 && s[length] < 0x7f && s[length] != '"' && s[length] != '\\') length++;
    return length;
}

static void quoted_character(FILE *out, const unsigned char *s, int length) {
    if (*s == '"' || *s == '\\')
        fprintf(out, "\\%c", *s);
    else if (*s < 0x20 || *s == 0x7f)
        fprintf(out, "\\u%04x", *s);
    else if (!length)
        fputs("\\ufffd", out);
    else
        fwrite(s, 1, (size_t)length, out);
}

static void quoted(FILE *out, const char *string) {
    const unsigned char *s = (const unsigned char *)string;
    putc_unlocked('"', out);
    while (*s) {
        size_t plain = plain_length(s);
        fwrite_unlocked(s, 1, plain, out);
        s += plain;
        if (!*s) break;
        int length = utf8_length(s);
        quoted_character(out, s, length);
        s += length ? length : 1;
    }
    putc_unlocked('"', out);
}

static void new_line(const struct json *json) {
    static const char blanks[] = "                                ";
    size_t width = 2 * (size_t)json->depth;
    putc_unlocked('\n', json->out);
    fwrite_unlocked(blanks, 1, width < sizeof blanks ? width : sizeof blanks - 1, json->out);
}

static void digits(FILE *out, uint64_t value) {
    char text[24], *start = text + sizeof text;
    do *--start = (char)('0' + value % 10);
    while (value /= 10);
    fwrite_unlocked(start, 1, (size_t)(text + sizeof text - start), out);
}

static void member(struct json *json, const char *key) {
    if (json->some) fputc(',', json->out);
    if (json->depth) new_line(json);
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
    if (json->some) new_line(json);
    fputc(bracket, json->out);
    json->some = true;
}

void json_object(struct json *json, const char *key) { open_with(json, key, '{'); }

void json_array(struct json *json, const char *key) { open_with(json, key, '['); }

void json_end_object(struct json *json) { close_with(json, '}'); }

void json_end_array(struct json *json) { close_with(json, ']'); }

void json_number(struct json *json, const char *key, uint64_t value) {
    member(json, key);
    digits(json->out, value);
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
