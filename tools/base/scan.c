/* scan.c — see scan.h. */
#include "tools/base/scan.h"
#include "tools/base/text.h"
#include "tools/base/whole_file.h"

#include "preload/shared/digit.h"
#include "preload/shared/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void scan_begin(struct scan *scan, const char *file, const char *text, size_t length) {
    *scan = (struct scan){.file = file, .at = text, .end = text + length, .line = text, .token = text};
}

int scan_open(struct scan *scan, const char *path) {
    struct whole_file file;
    int result = whole_file_read(&file, path, SCAN_FILE_MIB);
    scan_begin(scan, path, file.text, file.length);
    scan->own = file.text;
    if (result < 0) snprintf(scan->error, sizeof scan->error, "%s: %s", TEXT_SAFE(path), file.why);
    return result;
}

void scan_close(struct scan *scan) {
    free(scan->own);
    scan->own = NULL;
}

static size_t scan_column(const struct scan *scan) {
    size_t columns = 1;
    for (const char *c = scan->line; c < scan->token; c++) columns += ((unsigned char)*c & 0xc0) != 0x80;
    return columns;
}

int scan_fail(struct scan *scan, const char *format, ...) {
    char why[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    snprintf(scan->error, sizeof scan->error, "%.400s:%u:%zu: %.900s", text_fit(scan->file, 150).s, scan->number,
             scan_column(scan), TEXT_SAFE(why));
    return -1;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

bool scan_more(struct scan *scan) {
    while (scan->at < scan->end && is_blank(*scan->at)) scan->at++;
    scan->token = scan->at;
    return scan->at < scan->end && *scan->at != '\n' && *scan->at != '#';
}

bool scan_line(struct scan *scan) {
    for (;;) {
        if (scan->number) { /* skips the rest of the previous line */
            const char *stop = scan->at < scan->end ? memchr(scan->at, '\n', (size_t)(scan->end - scan->at)) : NULL;
            if (!stop) return false;
            scan->at = stop + 1;
        }
        scan->number++;
        scan->line = scan->at;
        if (scan_more(scan)) return true;
    }
}

void scan_word(struct scan *scan, char *to, size_t capacity) {
    size_t length = 0;
    scan_more(scan);
    while (scan->at < scan->end && (isalnum((unsigned char)*scan->at) || *scan->at == '-' || *scan->at == '_')) {
        if (length + 1 < capacity) to[length++] = *scan->at;
        scan->at++;
    }
    to[length] = 0;
}

bool scan_character(struct scan *scan, char wanted) {
    if (scan->at == scan->end || *scan->at != wanted) return false;
    scan->at++;
    return true;
}

int scan_number(struct scan *scan, uint64_t *number, const char *expected) {
    const char *from = scan->at;
    scan->token = from;
    *number = 0;
    for (; scan->at < scan->end && isdigit((unsigned char)*scan->at); scan->at++)
        if (__builtin_mul_overflow(*number, 10, number) ||
            __builtin_add_overflow(*number, (uint64_t)(*scan->at - '0'), number))
            return scan_fail(scan, "the number is too large");
    return scan->at > from ? 0 : scan_fail(scan, "%s expected", expected);
}

/* Reads an escape behind its backslash, and returns its character; 0: the escape is not valid. */
static char scan_unescape(struct scan *scan) {
    static const char from[] = "\"\\ntr", to[] = "\"\\\n\t\r";
    if (scan->at == scan->end) return 0;
    const char *found = memchr(from, *scan->at, sizeof from - 1);
    if (found) {
        scan->at++;
        return to[found - from];
    }
    if (*scan->at != 'x' || scan->end - scan->at < 3) return 0;
    int high = digit_value(scan->at[1]), low = digit_value(scan->at[2]);
    if (high < 0 || low < 0) return 0;
    scan->at += 3;
    return (char)(high << 4 | low);
}

static int scan_quoted(struct scan *scan, char *to, size_t capacity) {
    size_t length = 0;
    for (scan->at++;;) {
        char c = scan->at < scan->end ? *scan->at : '\n';
        if (c == '\n') return scan_fail(scan, "the quotes are not closed");
        scan->at++;
        if (c == '"') break;
        const char *backslash = scan->at - 1;
        if (c == '\\' && !(c = scan_unescape(scan))) {
            scan->token = backslash;
            return scan_fail(scan, "no such escape: \\\" \\\\ \\n \\t \\r and \\xNN (not \\x00) are known");
        }
        if (!c) return scan_fail(scan, "a NUL in the text");
        if (length + 1 == capacity) return scan_fail(scan, "the text is too long");
        to[length++] = c;
    }
    to[length] = 0;
    return 0;
}

int scan_string(struct scan *scan, char *to, size_t capacity, bool bare, const char *expected) {
    size_t length = 0;
    scan->token = scan->at;
    to[0] = 0;
    if (scan->at < scan->end && *scan->at == '"') return scan_quoted(scan, to, capacity);
    if (!bare) return scan_fail(scan, "%s expected, in quotes", expected);
    for (; scan->at < scan->end && !is_blank(*scan->at) && *scan->at != '\n' && *scan->at != '"'; scan->at++) {
        if (!*scan->at) return scan_fail(scan, "a NUL in the text");
        if (length + 1 == capacity) return scan_fail(scan, "the text is too long");
        to[length++] = *scan->at;
    }
    to[length] = 0;
    return length ? 0 : scan_fail(scan, "%s expected", expected);
}

int scan_end_of_line(struct scan *scan) {
    return scan_more(scan) ? scan_fail(scan, "nothing more belongs on this line") : 0;
}

static bool word_append(char *to, size_t capacity, size_t *used, const char *text, size_t length) {
    if (*used + length + 1 > capacity) return false;
    memcpy(to + *used, text, length);
    *used += length;
    to[*used] = 0;
    return true;
}

/* Appends one character. Quotes, backslashes, ASCII control characters and invalid bytes are escaped. */
static bool append_character(char *to, size_t capacity, size_t *used, const char *text, size_t length) {
    char escape[8];
    unsigned char c = (unsigned char)text[0];
    if (c == '"' || c == '\\')
        snprintf(escape, sizeof escape, "\\%c", c);
    else if (c == '\n' || c == '\t' || c == '\r')
        snprintf(escape, sizeof escape, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (c >= 0x20 && c != 0x7f && length)
        return word_append(to, capacity, used, text, length);
    else
        snprintf(escape, sizeof escape, "\\x%02x", c);
    return word_append(to, capacity, used, escape, strlen(escape));
}

bool scan_quote(char *to, size_t capacity, const char *text) {
    size_t used = strlen(to), left = strlen(text);
    bool fits = word_append(to, capacity, &used, "\"", 1);
    while (fits && left) {
        size_t length = utf8_size(text, left);
        fits = append_character(to, capacity, &used, text, length);
        text += length ? length : 1;
        left -= length ? length : 1;
    }
    return fits && word_append(to, capacity, &used, "\"", 1);
}
