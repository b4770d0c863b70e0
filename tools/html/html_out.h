/* html_out.h — writes the file of a page. Text is written as it is. Blocks of data are compressed, and encoded as
 * letters.
 * In: bytes, numbers, JSON. Out: HTML. No more than a window of the output is in memory. docs/html-data.md has the
 * format. */
#ifndef MEMSTOW_HTML_OUT_H
#define MEMSTOW_HTML_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

struct html_out {
    FILE *to;
    z_stream stream;
    bool failed; /* zlib reported an error */
    size_t waiting;
    uint8_t bytes[1 << 16];  /* the first `waiting` bytes wait for compression */
    uint8_t packed[3 << 14]; /* a multiple of three, so that a chunk of letters ends without padding */
    char text[(4 << 14) + 4];
};

/* Begins to write to the stream `to`. Returns 0, or -1: no memory. */
int html_out_begin(struct html_out *out, FILE *to);
/* Ends the writing. Returns 0, or -1: zlib failed at some time since html_out_begin(). */
int html_out_end(struct html_out *out);
void html_out_text(struct html_out *out, const void *text, size_t length);

/* Begins a column of a group; `count` numbers follow. `form` says how the page decodes them; docs/html-data.md lists
 * the forms. */
void html_column_begin(struct html_out *out, const char *group, const char *column, const char *form, size_t count);
void html_column_put(struct html_out *out, uint64_t number);
void html_column_put_signed(struct html_out *out, int64_t number);
void html_column_end(struct html_out *out);

/* Begins a JSON document. Returns a stream, or NULL if there is no memory. The caller writes the document to the
 * stream, and then closes the stream. */
FILE *html_document(struct html_out *out, const char *name);

#endif
