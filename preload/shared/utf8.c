/* utf8.c — see utf8.h. */
#include "preload/shared/utf8.h"

#include <stdbool.h>

static size_t character_size(unsigned char first) {
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

/* Whether the bytes are a valid UTF-8 character: not overlong, not half of a surrogate pair, not above U+10FFFF. */
static bool is_well_formed(const unsigned char *s, size_t size) {
    for (size_t i = 1; i < size; i++)
        if ((s[i] & 0xc0) != 0x80) return false;
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
