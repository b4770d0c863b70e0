/* utf8.c — see utf8.h. */
#include "preload/shared/utf8.h"

#include <stdbool.h>

static bool is_continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

static size_t character_size(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* Whether the bytes are a valid UTF-8 character: not overlong, not half of a surrogate pair, not above U+10FFFF. */
static bool is_well_formed(const unsigned char *s, size_t size) {
    for (size_t i = 1; i < size; i++)
        if (!is_continuation(s[i])) return false;
    return !((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
             (s[0] == 0xf4 && s[1] > 0x8f));
}

size_t utf8_size(const char *text, size_t length) {
    const unsigned char *s = (const unsigned char *)text;
    size_t size = length ? character_size(s[0]) : 0;
    return size && size <= length && is_well_formed(s, size) ? size : 0;
}

size_t utf8_printable(const char *text, size_t length) {
    const unsigned char *s = (const unsigned char *)text;
    bool is_control = length && (s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && length > 1 && s[1] < 0xa0));
    return is_control ? 0 : utf8_size(text, length);
}

size_t utf8_put(char to[UTF8_MOST], uint32_t character) {
    if (character < 0x80) return to[0] = (char)character, 1;
    size_t size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i; i--, character >>= 6) to[i] = (char)(0x80 | (character & 0x3f));
    to[0] = (char)(0xf00 >> size | character);
    return size;
}

size_t utf8_cut(const char *text, size_t length) {
    while (length && is_continuation((unsigned char)text[length])) length--;
    return length;
}
