/* scan.h — reads small text files that people write or merge: lines of words, numbers and quoted strings.
 * In: a file that is not trusted. Out: its tokens; or one message, "FILE:LINE:COLUMN: why". A '#' begins a comment. The
 * functions never read past the end of the text. */
#ifndef MEMSTOW_SCAN_H
#define MEMSTOW_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_FILE_MIB = 16, SCAN_STRING_MOST = 4096 };

struct scan {
    const char *file; /* name of the file in messages */
    const char *at, *end;
    const char *line, *token; /* where the present line, and the token that was read last, begin */
    uint32_t number;          /* number of the line */
    char *own;                /* the text that scan_open read */
    char error[1400];
};

void scan_begin(struct scan *scan, const char *file, const char *text, size_t length);
/* Reads the file. Returns 0, or -1 with the message. */
int scan_open(struct scan *scan, const char *path);
void scan_close(struct scan *scan);

/* Goes to the next line with content: anything but blanks and a comment. False: there is no such line. */
bool scan_line(struct scan *scan);
/* Skips blanks. Returns whether anything but a comment is left on the line. */
bool scan_more(struct scan *scan);

/* Reads letters, digits, '-' and '_'; "" if there are none. Stops in front of the first other character. */
void scan_word(struct scan *scan, char *to, size_t capacity);
/* Consumes the character if it comes next, and returns whether it did. */
bool scan_character(struct scan *scan, char wanted);
/* Reads digits. Returns 0, or -1 with a message that names `expected`. */
int scan_number(struct scan *scan, uint64_t *number, const char *expected);
/* Reads a text in quotes or, if `bare` is true, an unquoted text up to the next blank. Returns as scan_number does. */
int scan_string(struct scan *scan, char *to, size_t capacity, bool bare, const char *expected);
/* Expects the end of the line. Returns 0, or -1 with a message if anything else follows. */
int scan_end_of_line(struct scan *scan);

/* Sets the message, with the position of the token that was read last. Returns -1. */
int scan_fail(struct scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the text in quotes, in the form that scan_string reads. False: it does not fit. */
bool scan_quote(char *to, size_t capacity, const char *text);

#endif
