/* packed.c — SNAP_TOTALS, the packed totals of a snapshot, both ways.
 * In: LEB128 numbers from a hostile file, or totals. Out: totals, or bytes. It never reads past its section. */
#include "packed.h"

#include <string.h>

struct stream {
    const struct reader *reader;
    uint64_t next, end; /* file offsets: of what is not in the window yet, and of the section's end */
    size_t position, filled;
    uint8_t window[65536];
};

static int stream_byte(struct stream *stream, uint8_t *byte) {
    if (stream->position == stream->filled) {
        uint64_t left = stream->end - stream->next;
        stream->filled = left < sizeof stream->window ? (size_t)left : sizeof stream->window;
        stream->position = 0;
        if (!stream->filled || source_read(stream->reader->source, stream->next, stream->window, stream->filled) < 0)
            return -1;
        stream->next += stream->filled;
    }
    *byte = stream->window[stream->position++];
    return 0;
}

/* 64 bits take ten groups of seven; the tenth has room for one bit only. */
static int stream_number(struct stream *stream, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte;
        if (stream_byte(stream, &byte) < 0 || (shift == 63 && byte > 1)) return -1;
        *number |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return 0;
    }
    return -1;
}

static int stream_total(struct stream *stream, struct total *total) {
    uint64_t field[SNAP_TOTALS_FIELDS];
    for (size_t i = 0; i < SNAP_TOTALS_FIELDS; i++)
        if (stream_number(stream, &field[i]) < 0) return -1;
    if (field[0] < SNAP_HOST || field[0] > SNAP_MAPPED) return -1;
    if (field[1] > UINT32_MAX || field[2] > UINT32_MAX || field[3] > UINT32_MAX) return -1;
    *total = (struct total){.class = (uint8_t)field[0],
                            .tag = (uint32_t)field[1],
                            .stack = (uint32_t)field[2],
                            .module = (uint32_t)field[3],
                            .flags = (uint8_t)(field[4] & ~(uint64_t)TOTAL_REMAINDER),
                            .alloc_bytes = field[5],
                            .alloc_blocks = field[6],
                            .free_bytes = field[7],
                            .free_blocks = field[8],
                            .peak_bytes = field[9],
                            .peak_blocks = field[10]};
    return 0;
}

static int load_section(struct reader *reader, const struct section *section) {
    static struct stream stream;
    stream.reader = reader;
    stream.next = section->data;
    stream.end = section->data + section->head.length - sizeof section->head;
    stream.position = stream.filled = 0;
    for (uint64_t i = 0; i < section->head.count; i++) {
        struct total total;
        if (stream_total(&stream, &total) < 0)
            return reader_damaged(reader, stream.next - stream.filled + stream.position, "an impossible total");
        if (reader_add_total(reader, &total) < 0) return -1;
    }
    return 0;
}

int packed_load(struct reader *reader) {
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_TOTALS && load_section(reader, &reader->sections[i]) < 0) return -1;
    reader->image->has_picture = reader->image->header.picture_buffer < 2;
    return 0;
}

size_t packed_total(const struct total *total, uint8_t to[PACKED_MAX]) {
    uint64_t field[SNAP_TOTALS_FIELDS] = {total->class,        total->tag,        total->stack,
                                          total->module,       total->flags,      total->alloc_bytes,
                                          total->alloc_blocks, total->free_bytes, total->free_blocks,
                                          total->peak_bytes,   total->peak_blocks};
    uint8_t *next = to;
    for (size_t i = 0; i < SNAP_TOTALS_FIELDS; i++) next = snap_put_number(next, field[i]);
    return (size_t)(next - to);
}
