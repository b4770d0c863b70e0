/* trace_lines.c — see trace_lines.h. */
#include "tools/reader/trace_lines.h"

#include <stdlib.h>
#include <string.h>

enum { LIVE_TRIES = 100 };
static const char CUT_SHORT[] = "the trace is cut short";
static const uint64_t CAPACITY_MOST = 4 << 20; /* four times the size that the library uses */

static const struct section *find_ring(const struct reader *reader) {
    for (size_t i = 0; i < reader->section_count; i++)
        if (reader->sections[i].head.type == SNAP_TRACE && reader->sections[i].capacity >= sizeof(struct snap_ring))
            return &reader->sections[i];
    return NULL;
}

/* Copies the bytes from `start` to `end` of the ring, which are no more than the ring holds. */
static int copy_ring(const struct reader *reader, uint64_t bytes, const struct snap_ring *ring, uint8_t *to) {
    uint64_t offset = ring->start % ring->capacity, length = ring->end - ring->start;
    uint64_t first = ring->capacity - offset < length ? ring->capacity - offset : length;
    if (source_read(reader->source, bytes + offset, to, first) < 0) return -1;
    return source_read(reader->source, bytes, to + first, length - first);
}

/* The length of the line at the beginning of the bytes; 0: the line is incomplete or damaged. */
static size_t whole_line(const uint8_t *bytes, size_t length) {
    struct snap_line head;
    if (length < sizeof head) return 0;
    memcpy(&head, bytes, sizeof head);
    const char *text = (const char *)bytes + sizeof head;
    size_t size = (sizeof head + (size_t)head.length + 7) & ~(size_t)7;
    if (!head.length || head.length > SNAP_LINE_MOST || size > length) return 0;
    if (snap_line_check(head.number, text, head.length) != head.check) return 0;
    return jsontext_is_object(text, head.length) ? size : 0;
}

/* Keeps the lines from `from` up to the first damaged or incomplete line, and moves them to the beginning of `bytes`.
 * Returns their length in bytes. */
static size_t keep_whole(uint8_t *bytes, size_t from, size_t length) {
    size_t used = 0, size;
    while (from + used < length && (size = whole_line(bytes + from + used, length - from - used))) used += size;
    memmove(bytes, bytes + from, used);
    return used;
}

static bool ring_is_sound(const struct section *section, const struct snap_ring *ring) {
    return ring->capacity && ring->capacity % 8 == 0 && ring->capacity <= section->capacity - sizeof *ring &&
           ring->capacity <= CAPACITY_MOST && ring->end >= ring->start && ring->end - ring->start <= ring->capacity &&
           ring->start % 8 == 0 && ring->end % 8 == 0;
}

/* Reads `start` before `end`. If `end` has moved on by more than a ring meanwhile, reads `start` and `end` again. */
static int read_ring(const struct reader *reader, uint64_t offset, struct snap_ring *ring) {
    int tries = reader->live ? LIVE_TRIES : 1;
    do
        if (source_read(reader->source, offset, ring, sizeof *ring) < 0) return -1;
    while (ring->end - ring->start > ring->capacity && --tries > 0);
    return 0;
}

/* Copies the lines in the ring. *gone: how many of the first bytes the process overwrote during the copying. Returns 0
 * or -1. */
static int copy_lines(struct reader *reader, uint64_t offset, const struct snap_ring *ring, uint8_t *to, size_t *gone) {
    uint64_t start = ring->start;
    if (copy_ring(reader, offset + sizeof *ring, ring, to) < 0) return -1;
    if (reader->live &&
        source_read(reader->source, offset + offsetof(struct snap_ring, start), &start, sizeof start) < 0)
        return -1;
    *gone = start > ring->start ? start - ring->start : 0;
    return 0;
}

/* Copies the complete lines to `to`, and makes *ring describe the copy. If a live process overwrote all of them during
 * the copying, copies again. Returns 0 or -1. */
static int load_ring(struct reader *reader, const struct section *section, struct snap_ring *ring, uint8_t *to) {
    size_t gone = 0;
    int tries = LIVE_TRIES;
    do {
        if (read_ring(reader, section->data, ring) < 0) return reader_damaged(reader, section->data, CUT_SHORT);
        if (!ring->capacity) return 0; /* the process has made the section, but not yet set up the ring in it */
        if (!ring_is_sound(section, ring)) return reader_damaged(reader, section->data, "a trace that does not add up");
        if (copy_lines(reader, section->data, ring, to, &gone) < 0)
            return reader_damaged(reader, section->data, CUT_SHORT);
    } while (gone && gone >= ring->end - ring->start && --tries > 0);
    size_t length = ring->end - ring->start, used = gone < length ? keep_whole(to, gone, length) : 0;
    *ring = (struct snap_ring){.capacity = used, .end = used, .next = ring->next};
    return 0;
}

int trace_lines_load(struct reader *reader) {
    const struct section *section = find_ring(reader);
    if (!section) return 0;
    uint64_t most = section->capacity - sizeof(struct snap_ring);
    uint8_t *trace = malloc(sizeof(struct snap_ring) + (most < CAPACITY_MOST ? most : CAPACITY_MOST) + 1);
    struct snap_ring ring;
    if (!trace) return reader_memory(reader);
    int error = load_ring(reader, section, &ring, trace + sizeof ring);
    if (error < 0 || !ring.capacity) {
        free(trace);
        return error;
    }
    memcpy(trace, &ring, sizeof ring);
    reader->image->trace = trace;
    reader->image->trace_size = sizeof ring + ring.capacity;
    return 0;
}

bool trace_lines_next(const struct image *image, size_t *at, struct trace_line *line) {
    struct snap_line head;
    size_t offset = sizeof(struct snap_ring) + *at;
    if (offset >= image->trace_size) return false;
    memcpy(&head, image->trace + offset, sizeof head);
    line->number = head.number;
    line->object = (struct jsontext){(const char *)image->trace + offset + sizeof head, head.length};
    *at += (sizeof head + (size_t)head.length + 7) & ~(size_t)7;
    return true;
}
