/* html_out.h — the file of a page: text as it stands, and blocks of data, compressed and written as letters.
 * In: bytes, numbers, JSON. Out: HTML. It keeps no more than a window of what it writes. docs/html.md has the format.
 */
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
    bool failed; /* zlib had no memory */
    size_t waiting;
    uint8_t bytes[1 << 16];  /* that wait to be compressed */
    uint8_t packed[3 << 14]; /* a whole number of threes, so that a chunk of letters ends without padding */
    char text[(4 << 14) + 4];
};

/* 0, or -1: no memory. */
int html_out_begin(struct html_out *out, FILE *to);
/* 0, or -1 when something failed on the way. */
int html_out_end(struct html_out *out);
void html_out_text(struct html_out *out, const void *text, size_t length);

/* A column of a group: so many numbers follow. `form` says how a reader takes them: "numbers", or "signed". */
void html_column_begin(struct html_out *out, const char *group, const char *column, const char *form, size_t count);
void html_column_put(struct html_out *out, uint64_t number);
void html_column_put_signed(struct html_out *out, int64_t number);
void html_column_end(struct html_out *out);

/* A JSON document: what is written to the stream until it is closed. NULL: no memory. */
FILE *html_document(struct html_out *out, const char *name);

#endif
