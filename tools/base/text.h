/* text.h — values as text for people: sizes, counts, times, and strings from elsewhere.
 * In: numbers and untrusted bytes. Out: short printable strings, returned by value so that printf can use them in
 * place: printf("%s", text_size(n).s). It never passes a control character on to a terminal. */
#ifndef MEMSTOW_TEXT_H
#define MEMSTOW_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct text {
    char s[32];
};
struct text_line {
    char s[1024];
};

struct text text_size(uint64_t bytes);        /* 12.3 MiB */
struct text text_size_change(int64_t bytes);  /* +12.3 MiB */
struct text text_estimate(uint64_t bytes);    /* < 1 MiB, 12.3 MiB: for values that may be wrong by up to 1 MiB */
struct text text_count(uint64_t count);       /* 12,345 */
struct text text_block_count(uint64_t count); /* 1 block, 12,345 blocks */
struct text text_byte_count(uint64_t count);  /* 1 byte, 12,345 bytes */
struct text text_count_change(int64_t count); /* +12,345 */
struct text text_block_change(int64_t count); /* +1 block, +12,345 blocks */
struct text text_duration(uint64_t ns);       /* 12.3 s, 3 min 20 s */
struct text text_when(uint64_t wall_ns);      /* 2026-11-21 11:28:08, local time */
/* 12.3 MiB. "< 1 MiB" if the peak is 0 although something was allocated: then the peak was too small to be noted. */
struct text text_peak(uint64_t peak, uint64_t allocated);
/* The string made safe, and cut to `width` columns. A path loses its first names, and keeps its last name as long as
 * that name fits. Other text loses its middle. text_fit decides by the look of the string whether it is a path. */
struct text_line text_fit(const char *string, int width);
struct text_line text_fit_path(const char *path, int width);
int text_columns(const char *s);              /* the columns of the string on a terminal, one for each character */
const char *text_base_name(const char *path); /* the last name of a path */
/* The folder of a path: everything in front of its last name, without the slash; "." if there is no folder. */
void text_folder(const char *path, char *to, size_t size);
struct text_line text_left(const char *string, int width); /* cut, or padded with blanks, to `width` columns */

/* The columns of a line on standard output: 80, or more on a wider terminal. */
int text_width(void);

/* Whether the environment says that the locale's characters are UTF-8. */
bool text_is_utf8(void);

/* The escape sequence that switches a style on; TEXT_PLAIN switches it off again. The sequence is "" if standard output
 * is not a terminal, if NO_COLOR is set, or if TERM is "dumb". Do not use it in text whose columns are counted. */
enum text_style { TEXT_PLAIN, TEXT_BOLD, TEXT_RED, TEXT_GREEN };
const char *text_style(enum text_style style);
/* Prints a heading: an empty line, and the words in bold. */
void text_heading(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Writes text, made safe and broken between words into lines of at most 78 columns. The caller has written `column`
 * columns of the first line; further lines begin with `indent` blanks. */
void text_wrap(FILE *to, const char *string, int column, int indent);

/* Writes bytes as TEXT_BASE64(length) letters, without a NUL behind them. */
#define TEXT_BASE64(length) (((length) + 2) / 3 * 4)
void text_base64(char *to, const void *bytes, size_t length);

#define TEXT_SAFE(string) (text_fit((string), 300).s)

#endif
