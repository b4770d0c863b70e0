/* line.h — a line of JSON, built member by member, for the trace or a log.
 * In: keys and values. Out: one JSON object. libc's formatted output may allocate, so it is not used. Each byte that is
 * not UTF-8 becomes a question mark. */
#ifndef MEMSTOW_LINE_H
#define MEMSTOW_LINE_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { LINE_MOST = 4000, LINE_STRING = 300 }; /* in bytes; a longer line or string is cut */

struct line {
    size_t used;
    char text[LINE_MOST];
};

/* Begins an object with the member "kind". */
void line_begin(struct line *self, const char *kind);
void line_number(struct line *self, const char *key, uint64_t number);
void line_signed(struct line *self, const char *key, int64_t number);
void line_string(struct line *self, const char *key, const char *text);
/* An array of two numbers. */
void line_pair(struct line *self, const char *key, uint64_t first, uint64_t second);
/* An array of `count` numbers. */
void line_numbers(struct line *self, const char *key, const uint32_t *numbers, uint32_t count);
/* Ends the object. trace_add_line calls it, so do not call it for a line of the trace. */
void line_end(struct line *self);
/* Ends the object and the line, for a file. */
void line_close(struct line *self);

#pragma GCC visibility pop

#endif
