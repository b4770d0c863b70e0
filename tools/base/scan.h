/* scan.h — small text files that people write or merge: lines of words, numbers and quoted strings.
 * In: a file that nobody vouches for. Out: its tokens; or one message, "FILE:LINE:COLUMN: why". A '#' begins a comment.
 * It never reads past the text, and keeps nothing but the message. */
#ifndef MEMSTOW_SCAN_H
#define MEMSTOW_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCAN_FILE_MOST = 16 << 20, SCAN_STRING_MOST = 4096 };

struct scan {
    const char *file; /* as messages name it */
    const char *at, *end;
    const char *line, *token; /* where the line, and what was read last, begin */
    uint32_t number;          /* of the line */
    char *own;                /* what scan_open read */
    char error[1400];
};

void scan_begin(struct scan *scan, const char *file, const char *text, size_t length);
/* Reads the file. 0, or -1 with the message. */
int scan_open(struct scan *scan, const char *path);
void scan_close(struct scan *scan);

/* Goes on to the next line that says something; false at the end of the text. */
bool scan_line(struct scan *scan);
/* Whether something is left on the line. */
bool scan_more(struct scan *scan);

/* Letters, digits and '-' or '_': "" when there is none. The character behind it is left. */
void scan_word(struct scan *scan, char *to, size_t room);
/* Takes that character if it comes next. */
bool scan_character(struct scan *scan, char wanted);
/* 0, or -1 with the message; what is expected goes into it. Digits: */
int scan_number(struct scan *scan, uint64_t *number, const char *expected);
/* a text in quotes, or, where bare ones are allowed, up to the next blank: */
int scan_string(struct scan *scan, char *to, size_t room, bool bare, const char *expected);
/* and nothing more on this line: */
int scan_end_of_line(struct scan *scan);

/* The message, of what was read last; -1. */
int scan_fail(struct scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends the text in quotes, as scan_string reads it. False when there is no room. */
bool scan_quote(char *to, size_t room, const char *text);

#endif
