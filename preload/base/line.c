/* line.c — see line.h. */
#include "preload/base/line.h"

#include <string.h>

#include "preload/shared/utf8.h"
#include "preload/shared/os.h"

/* Appends bytes to the line. memstow's texts are much shorter than a line. If a line becomes too long all the same, it
 * is cut. */
static void line_put(struct line *self, const char *text, size_t length) {
    if (length > sizeof self->text - self->used) length = sizeof self->text - self->used;
    memcpy(self->text + self->used, text, length);
    self->used += length;
}

static void line_put_text(struct line *self, const char *text) { line_put(self, text, strlen(text)); }

static void put_decimal(struct line *self, uint64_t number) {
    char digits[24];
    line_put(self, digits, (size_t)(os_decimal(digits, number) - digits));
}

static void put_key(struct line *self, const char *key) {
    line_put_text(self, self->used > 1 ? ",\"" : "\"");
    line_put_text(self, key);
    line_put_text(self, "\":");
}

static void put_escaped(struct line *self, unsigned char c) {
    static const char hex[] = "0123456789abcdef";
    char escape[] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    if (c == '"' || c == '\\')
        line_put(self, (char[]){'\\', (char)c}, 2);
    else
        line_put(self, escape, sizeof escape);
}

static void put_string(struct line *self, const char *text) {
    size_t left = strlen(text), most = LINE_STRING;
    line_put_text(self, "\"");
    while (left && most) {
        unsigned char c = (unsigned char)*text;
        size_t size = utf8_size(text, left);
        if (c < 0x20 || c == '"' || c == '\\')
            put_escaped(self, c);
        else
            line_put(self, size ? text : "?", size ? size : 1);
        size = size ? size : 1;
        text += size;
        left -= size;
        most -= size < most ? size : most;
    }
    line_put_text(self, "\"");
}

void line_begin(struct line *self, const char *kind) {
    self->used = 0;
    line_put_text(self, "{");
    line_string(self, "kind", kind);
}

void line_number(struct line *self, const char *key, uint64_t number) {
    put_key(self, key);
    put_decimal(self, number);
}

void line_signed(struct line *self, const char *key, int64_t number) {
    put_key(self, key);
    if (number < 0) line_put_text(self, "-");
    put_decimal(self, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void line_string(struct line *self, const char *key, const char *text) {
    put_key(self, key);
    put_string(self, text);
}

void line_numbers(struct line *self, const char *key, const uint32_t *numbers, uint32_t count) {
    put_key(self, key);
    for (uint32_t i = 0; i < count; i++) {
        line_put_text(self, i ? "," : "[");
        put_decimal(self, numbers[i]);
    }
    line_put_text(self, count ? "]" : "[]");
}

void line_pair(struct line *self, const char *key, uint64_t first, uint64_t second) {
    put_key(self, key);
    line_put_text(self, "[");
    put_decimal(self, first);
    line_put_text(self, ",");
    put_decimal(self, second);
    line_put_text(self, "]");
}

void line_end(struct line *self) { line_put_text(self, "}"); }

void line_close(struct line *self) { line_put_text(self, "}\n"); }
