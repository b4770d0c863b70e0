/* utf8.h — characters of UTF-8.
 * In: bytes of any origin, or a character's number. Out: how many bytes are one character, or its bytes. Only
 * utf8_cut reads a byte behind `length`. */
#ifndef MEMSTOW_UTF8_H
#define MEMSTOW_UTF8_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { UTF8_MOST = 4 /* the bytes of the longest character */ };

/* The length of the character at the start of the text, in bytes; 0: there is no valid character. */
size_t utf8_size(const char *text, size_t length);
/* As utf8_size, but 0 for control characters: those of ASCII, and U+0080 to U+009F, which some terminals obey. */
size_t utf8_printable(const char *text, size_t length);
/* Writes a character, and returns how many bytes it has. It takes any number below 0x200000. */
size_t utf8_put(char to[UTF8_MOST], uint32_t character);
/* The largest number of bytes, at most `length`, to which the text can be cut without cutting a character in two.
 * text[length] must be readable. */
size_t utf8_cut(const char *text, size_t length);

#pragma GCC visibility pop

#endif
