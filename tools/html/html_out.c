/* html_out.c — see html_out.h. */
#include "tools/html/html_out.h"
#include "tools/base/text.h"

#include "preload/shared/snapshot.h"

#include <string.h>

int html_out_begin(struct html_out *out, FILE *to) {
    memset(&out->stream, 0, sizeof out->stream);
    out->to = to;
    out->failed = false;
    return deflateInit(&out->stream, Z_DEFAULT_COMPRESSION) == Z_OK ? 0 : -1;
}

int html_out_end(struct html_out *out) {
    deflateEnd(&out->stream);
    return out->failed ? -1 : 0;
}

void html_out_text(struct html_out *out, const void *text, size_t length) { fwrite(text, 1, length, out->to); }

/* ---- bytes to letters: base64 */

static void put_packed(struct html_out *out, size_t length) {
    text_base64(out->text, out->packed, length);
    fwrite(out->text, 1, TEXT_BASE64(length), out->to);
}

/* ---- compressing bytes */

static void html_out_pack(struct html_out *out, int flush) {
    int result = Z_OK;
    out->stream.next_in = out->bytes;
    out->stream.avail_in = (uInt)out->waiting;
    while (result == Z_OK) {
        result = deflate(&out->stream, flush);
        if (out->stream.avail_out && result != Z_STREAM_END) break; /* zlib needs more input */
        put_packed(out, sizeof out->packed - out->stream.avail_out);
        out->stream.next_out = out->packed;
        out->stream.avail_out = sizeof out->packed;
    }
    out->failed |= result == Z_STREAM_ERROR;
    out->waiting = 0;
}

static void put_bytes(struct html_out *out, const void *bytes, size_t length) {
    const uint8_t *from = bytes;
    while (length) {
        size_t capacity = sizeof out->bytes - out->waiting, some = length < capacity ? length : capacity;
        memcpy(out->bytes + out->waiting, from, some);
        out->waiting += some;
        from += some;
        length -= some;
        if (out->waiting == sizeof out->bytes) html_out_pack(out, Z_NO_FLUSH);
    }
}

static void stream_begin(struct html_out *out) {
    out->failed |= deflateReset(&out->stream) != Z_OK;
    out->waiting = 0;
    out->stream.next_out = out->packed;
    out->stream.avail_out = sizeof out->packed;
}

static void stream_end(struct html_out *out) {
    html_out_pack(out, Z_FINISH);
    fputs("</script>\n", out->to);
}

/* ---- writing columns */

void html_column_begin(struct html_out *out, const char *group, const char *column, const char *form, size_t count) {
    fprintf(out->to,
            "<script type=\"application/octet-stream\" data-group=\"%s\" data-column=\"%s\" data-form=\"%s\" "
            "data-count=\"%zu\">",
            group, column, form, count);
    stream_begin(out);
}

void html_column_put(struct html_out *out, uint64_t number) {
    if (sizeof out->bytes - out->waiting < SNAP_NUMBER_MAX) html_out_pack(out, Z_NO_FLUSH);
    out->waiting = (size_t)(snap_put_number(out->bytes + out->waiting, number) - out->bytes);
}

void html_column_put_signed(struct html_out *out, int64_t number) {
    html_column_put(out, (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0));
}

void html_column_end(struct html_out *out) { stream_end(out); }

/* ---- writing documents */

static ssize_t document_write(void *cookie, const char *bytes, size_t length) {
    put_bytes(cookie, bytes, length);
    return (ssize_t)length;
}

static int document_close(void *cookie) {
    stream_end(cookie);
    return 0;
}

FILE *html_document(struct html_out *out, const char *name) {
    static const cookie_io_functions_t functions = {.write = document_write, .close = document_close};
    FILE *document = fopencookie(out, "w", functions);
    if (!document) return NULL;
    fprintf(out->to, "<script type=\"application/octet-stream\" data-document=\"%s\">", name);
    stream_begin(out);
    return document;
}
