/* builder.h — ledgers and snapshots in memory, for tests of the reader. In: records. Out: bytes of a file, correct
 * except for what a test makes wrong on purpose. */
#ifndef BUILDER_H
#define BUILDER_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "preload/shared/snapshot.h"

struct builder {
    uint8_t *bytes;
    size_t size, room;
    uint32_t wide; /* counters so far */
};

static inline struct snap_header *builder_header(struct builder *self) {
    return (struct snap_header *)(void *)self->bytes;
}

static inline void *builder_append(struct builder *self, const void *bytes, size_t size) {
    if (self->size + size > self->room) {
        self->room = 2 * (self->size + size);
        self->bytes = realloc(self->bytes, self->room);
        assert(self->bytes);
    }
    uint8_t *to = self->bytes + self->size;
    if (bytes)
        memcpy(to, bytes, size);
    else
        memset(to, 0, size);
    self->size += size;
    builder_header(self)->size = self->size;
    return to;
}

static inline void builder_begin(struct builder *self, uint32_t kind) {
    *self = (struct builder){.bytes = calloc(1, SNAP_HEADER_SIZE), .size = SNAP_HEADER_SIZE, .room = SNAP_HEADER_SIZE};
    assert(self->bytes);
    struct snap_header *header = builder_header(self);
    memcpy(header->magic, SNAP_MAGIC, sizeof header->magic);
    header->major = SNAP_MAJOR;
    header->minor = SNAP_MINOR;
    header->byte_order = SNAP_BYTE_ORDER;
    header->header_size = SNAP_HEADER_SIZE;
    header->kind = kind;
    header->size = SNAP_HEADER_SIZE;
    header->state = SNAP_EXITED;
    header->pid = 1000;
    header->page_size = 4096;
    header->picture_buffer = 2;
    strcpy(header->name, "program");
}

static inline void builder_end(struct builder *self) { free(self->bytes); }

/* Appends a section of `count` records. Returns its offset in the file. */
static inline size_t builder_section(struct builder *self, uint32_t type, size_t record_size, const void *records,
                                     uint64_t count, uint64_t first) {
    size_t body = (size_t)count * record_size, padding = (8 - body % 8) % 8, offset = self->size;
    struct snap_section head = {type, 1, (uint16_t)record_size, sizeof head + body + padding, count, first};
    builder_append(self, &head, sizeof head);
    builder_append(self, records, body);
    builder_append(self, NULL, padding);
    return offset;
}

static inline struct snap_section *builder_head(struct builder *self, size_t offset) {
    return (struct snap_section *)(void *)(self->bytes + offset);
}

/* Adds the strings "" at 0, "/bin/a" at 1 and "/lib/b.so" at 8, and modules 0 and 1, whose paths are the last two. */
static inline void builder_modules(struct builder *self) {
    static const char strings[] = "\0/bin/a\0/lib/b.so";
    struct snap_module modules[2] = {{.path = 1}, {.path = 8}};
    builder_section(self, SNAP_STRINGS, 1, strings, sizeof strings, 0);
    builder_section(self, SNAP_MODULE, sizeof modules[0], modules, 2, 0);
}

/* A chunk with one word. */
static inline void builder_word(struct builder *self, uint32_t thread, uint32_t site, uint64_t word) {
    struct snap_chunk *chunk = calloc(1, sizeof *chunk);
    assert(chunk);
    chunk->thread = thread + 1;
    chunk->index = site / SNAP_CHUNK_SITES;
    chunk->words[site % SNAP_CHUNK_SITES] = word;
    builder_section(self, SNAP_COUNTERS, sizeof *chunk, chunk, 1, 0);
    free(chunk);
}

/* Adds a chunk with one word that leads to a wide counter, and a section with that wide counter. `thread` is a slot. */
static inline void builder_counter(struct builder *self, uint32_t thread, uint32_t site, struct snap_counter counter) {
    uint64_t address = 0x7f0000000000 + self->wide * sizeof counter;
    struct snap_counter records[2] = {{.alloc_bytes = address}, counter};
    builder_word(self, thread, site, SNAP_WIDE_BIT | (address + sizeof counter));
    builder_section(self, SNAP_WIDE, sizeof counter, records, 2, self->wide);
    self->wide += 2;
}

#endif
