/* packed.c — see packed.h.
 * In: LEB128 numbers from a hostile file, or totals. Out: totals, or bytes. It never reads past its section. */
#include "tools/reader/packed.h"

#include <string.h>

struct stream {
    const struct reader *reader;
    uint64_t next, end; /* next: the file offset of the first byte after the window; end: the section's end */
    size_t position, filled;
    uint8_t window[65536];
};

static int stream_refill(struct stream *stream) {
    size_t kept = stream->filled - stream->position, capacity = sizeof stream->window - kept;
    uint64_t left = stream->end - stream->next;
    size_t more = left < capacity ? (size_t)left : capacity;
    memmove(stream->window, stream->window + stream->position, kept);
    stream->position = 0;
    stream->filled = kept + more;
    if (more && source_read(stream->reader->source, stream->next, stream->window + kept, more) < 0) return -1;
    stream->next += more;
    return 0;
}

static int stream_number(struct stream *stream, uint64_t *number) {
    if (stream->filled - stream->position < SNAP_NUMBER_MAX && stream->next < stream->end && stream_refill(stream) < 0)
        return -1;
    const uint8_t *at = stream->window + stream->position;
    if (!snap_get_number(&at, stream->window + stream->filled, number)) return -1;
    stream->position = (size_t)(at - stream->window);
    return 0;
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
