/* slots.c — see slots.h. */
#include "tools/reader/slots.h"
#include "tools/base/list.h"
#include "tools/reader/origin_stacks.h"

#include <stdlib.h>
#include <string.h>

enum { LIVE_TRIES = 4, WINDOW = 65536 };

/* A slot table that is mostly empty. It is read piece by piece. Only slots for which `used` is true are kept. */
struct slots {
    size_t record_size;
    bool (*used)(const void *record); /* the slot is in use and not being written */
    bool (*busy)(const void *record); /* the slot is being written */
    uint8_t *kept;
    size_t count, capacity;
};

static bool large_used(const void *record) {
    const struct snap_large *large = record;
    return large->address != 0 && !(large->address & 1);
}

static bool large_busy(const void *record) { return ((const struct snap_large *)record)->address & 1; }

static bool mapping_used(const void *record) {
    const struct snap_mapping *mapping = record;
    return mapping->length != 0 && !(mapping->sequence & 1);
}

static bool mapping_busy(const void *record) { return ((const struct snap_mapping *)record)->sequence & 1; }

static bool cuda_used(const void *record) { return ((const struct snap_cuda_block *)record)->state == SNAP_CUDA_LIVE; }

static bool cuda_busy(const void *record) {
    return ((const struct snap_cuda_block *)record)->state == SNAP_CUDA_WRITING;
}

static bool shared_used(const void *record) {
    const struct snap_mapping *mapping = record;
    return mapping_used(record) && mapping->shared;
}

static bool origin_used(const void *record) {
    const struct snap_origin *origin = record;
    return origin->kind != 0 && !(origin->sequence & 1);
}

static bool origin_busy(const void *record) { return ((const struct snap_origin *)record)->sequence & 1; }

static int slots_keep(const struct reader *reader, struct slots *slots, const void *record) {
    if (!list_grow(&slots->kept, slots->record_size, slots->count, 1, &slots->capacity)) return reader_memory(reader);
    memcpy(slots->kept + slots->count++ * slots->record_size, record, slots->record_size);
    return 0;
}

/* Whether the slot is in use. The record of a live ledger is read again until two readings in a row agree, and `record`
 * gets the last reading. If no two readings agree, the result is false. */
static bool slots_settle(const struct reader *reader, const struct slots *slots, uint64_t offset, uint8_t *record) {
    uint8_t again[sizeof(struct snap_cuda_block)];
    if (!reader->live) return slots->used(record);
    for (int i = 0; i < LIVE_TRIES; i++) {
        if (source_read(reader->source, offset, again, slots->record_size) < 0) return false;
        if (!slots->busy(record) && memcmp(record, again, slots->record_size) == 0) return slots->used(record);
        memcpy(record, again, slots->record_size);
    }
    return false;
}

static int slots_section(const struct reader *reader, struct slots *slots, const struct section *section) {
    static uint8_t window[WINDOW];
    size_t stride = section->head.record_size, batch = WINDOW / stride ? WINDOW / stride : 1;
    for (uint64_t done = 0; done < section->capacity; done += batch) {
        uint64_t offset = section->data + done * stride, left = section->capacity - done;
        if (left < batch) batch = (size_t)left;
        if (source_read(reader->source, offset, window, batch * stride) < 0) return reader_truncated(reader, offset);
        for (size_t i = 0; i < batch; i++) {
            uint8_t *record = window + i * stride;
            if ((slots->used(record) || slots->busy(record)) &&
                slots_settle(reader, slots, offset + i * stride, record) && slots_keep(reader, slots, record) < 0)
                return -1;
        }
    }
    return 0;
}

static int slots_read(const struct reader *reader, uint32_t type, struct slots *slots) {
    uint64_t all = 0;
    for (size_t i = 0; i < reader->section_count; i++) {
        const struct section *section = &reader->sections[i];
        if (section->head.type != type) continue;
        all += section->capacity;
        if (reader_bound(reader, section->data, all, section->head.record_size) < 0 ||
            slots_section(reader, slots, section) < 0)
            return -1;
    }
    return 0;
}

int slots_load(struct reader *reader) {
    struct image *image = reader->image;
    struct slots large = {.record_size = sizeof *image->large, .used = large_used, .busy = large_busy};
    struct slots mapping = {.record_size = sizeof *image->mappings, .used = mapping_used, .busy = mapping_busy};
    struct slots cuda = {.record_size = sizeof *image->cuda.blocks, .used = cuda_used, .busy = cuda_busy};
    int failed = slots_read(reader, SNAP_LARGE, &large) < 0 || slots_read(reader, SNAP_MAPPING, &mapping) < 0 ||
                 slots_read(reader, SNAP_CUDA_BLOCK, &cuda) < 0;
    image->large = (struct snap_large *)(void *)large.kept;
    image->large_count = large.count;
    image->mappings = (struct snap_mapping *)(void *)mapping.kept;
    image->mapping_count = mapping.count;
    image->cuda.blocks = (struct snap_cuda_block *)(void *)cuda.kept;
    image->cuda.block_count = cuda.count;
    return failed ? -1 : 0;
}

int slots_load_origins(struct reader *reader) {
    struct slots origins = {.record_size = sizeof(struct snap_origin), .used = origin_used, .busy = origin_busy};
    struct slots shared = {.record_size = sizeof(struct snap_mapping), .used = shared_used, .busy = mapping_busy};
    int failed =
        reader->image->header.kind == SNAP_LEDGER &&
        (slots_read(reader, SNAP_ORIGIN, &origins) < 0 || slots_read(reader, SNAP_START, &origins) < 0 ||
         slots_read(reader, SNAP_MAPPING, &shared) < 0 ||
         origin_stacks_keep(reader, (void *)origins.kept, origins.count, (void *)shared.kept, shared.count) < 0);
    free(origins.kept);
    free(shared.kept);
    return failed ? -1 : 0;
}
