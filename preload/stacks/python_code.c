/* python_code.c — see python_code.h. CPython describes the location table in Objects/locations.md. */
#include "preload/stacks/python_code.h"

#include "preload/shared/utf8.h"

/* --- lines of instructions --- */

struct bytes {
    const uint8_t *at, *end;
};

/* Reads a varint. Each byte holds six bits of the value, the lowest bits first. Bit 6 says that more bytes follow. */
static uint32_t python_code_varint(struct bytes *in) {
    uint32_t value = 0;
    for (unsigned shift = 0; in->at < in->end && shift < 32; shift += 6) {
        uint8_t byte = *in->at++;
        value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64)) break;
    }
    return value;
}

static int32_t signed_varint(struct bytes *in) {
    uint32_t value = python_code_varint(in);
    return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 }; /* kinds below ONE_LINE: short forms, on the same line */

/* By how many lines an entry of this kind differs from the entry before it. */
static int32_t line_step(struct bytes *in, unsigned kind) {
    if (kind == NO_COLUMNS || kind == LONG) return signed_varint(in);
    return kind >= ONE_LINE && kind < NO_COLUMNS ? (int32_t)kind - ONE_LINE : 0;
}

/* Bit 7 is set in the first byte of an entry, and in no other byte. Bits 3–6 of the first byte are the entry's kind.
 * Bits 0–2 are the number of the entry's code units, minus 1. The columns at the end of the entry are skipped. */
uint32_t python_code_line_from(const uint8_t *table, size_t length, struct python_cursor *cursor, uint32_t unit) {
    for (struct bytes in = {table + cursor->at, table + length}; in.at < in.end;) {
        uint8_t head = *in.at++;
        unsigned kind = head >> 3 & 15;
        int64_t line = cursor->line + line_step(&in, kind);
        uint32_t covered = cursor->covered + (head & 7u) + 1;
        if (unit < covered) return kind == NONE || line < 0 ? 0 : (uint32_t)line;
        while (in.at < in.end && !(*in.at & 128)) in.at++;
        *cursor = (struct python_cursor){line, (size_t)(in.at - table), covered};
    }
    return 0;
}

uint32_t python_code_line(const uint8_t *table, size_t length, uint32_t first_line, uint32_t unit) {
    struct python_cursor cursor = {.line = first_line};
    return python_code_line_from(table, length, &cursor, unit);
}

/* --- text of strings --- */

static uint32_t python_code_character(const void *characters, size_t index, unsigned width) {
    if (width == 1) return ((const uint8_t *)characters)[index];
    return width == 2 ? ((const uint16_t *)characters)[index] : ((const uint32_t *)characters)[index];
}

/* Writes a character of a string as UTF-8. Python keeps a byte that is not valid UTF-8 as a surrogate
 * (surrogateescape). For such a surrogate, this function writes the original byte. */
static size_t python_code_put(char to[UTF8_MOST], uint32_t c) {
    if (c >= 0xDC80 && c <= 0xDCFF) return to[0] = (char)c, 1;
    if ((c >= 0xD800 && c <= 0xDFFF) || c > 0x10FFFF) c = 0xFFFD;
    return utf8_put(to, c ? c : '?');
}

size_t python_code_utf8(const void *characters, size_t count, unsigned width, char *to, size_t capacity) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        char bytes[UTF8_MOST];
        size_t n = python_code_put(bytes, python_code_character(characters, i, width));
        if (length + n >= capacity) break;
        for (size_t k = 0; k < n; k++) to[length++] = bytes[k];
    }
    to[length] = 0;
    return length;
}

/* Reads only "compact" strings, whose characters follow the header. Other strings come from old C code, and exist only
 * until 3.11. */
size_t python_code_text(const struct python_layout *layout, uintptr_t object, char *to, size_t capacity) {
    to[0] = 0;
    if (!object) return 0;
    uint32_t state = python_half(object, layout->text_state) >> layout->text_kind_shift;
    unsigned width = state & 7;
    bool compact = state & 8, ascii = state & 16;
    if (!compact || (width != 1 && width != 2 && width != 4)) return 0;
    const void *characters = (const void *)(object + (ascii ? layout->text_ascii : layout->text_other));
    return python_code_utf8(characters, python_word(object, layout->text_length), width, to, capacity);
}
