/* seen.c — see seen.h. CUPTI hands over buffers of several threads one after the other, so that the free of a block may
 * come before its allocation: of each address the record with the latest time counts, and what was freed stays in the
 * table for a while. */
#include "seen.h"

#include <stdlib.h>
#include <string.h>

#include "../preload/snapshot.h"

enum { SLOTS = 1 << 16, SLOTS_MOST = SLOTS / 4 * 3, CONTEXTS = 64 };
#define LATE_NS 2000000000ull /* a record comes no later than this behind others */

static struct seen tables[2][SLOTS], *table = tables[0];
static size_t used;
static uint64_t newest, renewed; /* times of records */
static char sources[SEEN_SOURCES][SEEN_SOURCE_LENGTH];
static size_t source_count = 1; /* 0 is none */
static uint32_t ended[CONTEXTS];
static size_t ended_count;

void seen_clear(void) {
    memset(tables, 0, sizeof tables);
    table = tables[0];
    used = 0;
    newest = renewed = 0;
    source_count = 1;
    ended_count = 0;
}

/* --- libraries --- */

static uint8_t source_of(const char *path) {
    if (!path || !*path) return SEEN_NO_SOURCE;
    size_t length = strlen(path);
    if (length >= SEEN_SOURCE_LENGTH) path += length - SEEN_SOURCE_LENGTH + 1;
    for (size_t i = 1; i < source_count; i++)
        if (strcmp(sources[i], path) == 0) return (uint8_t)i;
    if (source_count == SEEN_SOURCES) return SEEN_NO_SOURCE;
    memcpy(sources[source_count], path, strlen(path) + 1);
    return (uint8_t)source_count++;
}

const char *seen_source(const struct seen *seen) { return sources[seen->source]; }

/* --- the table: no slot becomes empty again but when all is put into the other one --- */

static struct seen *slot_of(struct seen *in, uint64_t address) {
    size_t i = (size_t)(address * 0x9E3779B97F4A7C15ull >> 48) % SLOTS;
    while (in[i].address && in[i].address != address) i = (i + 1) % SLOTS;
    return &in[i];
}

/* Leaves out what was freed long enough ago. Not more often than something can have become so. */
static void renew(void) {
    if (renewed && newest < renewed + LATE_NS) return;
    renewed = newest;
    struct seen *other = table == tables[0] ? tables[1] : tables[0];
    memset(other, 0, sizeof tables[0]);
    used = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct seen *seen = &table[i];
        if (!seen->address || (!seen->lives && seen->timestamp + LATE_NS < newest)) continue;
        *slot_of(other, seen->address) = *seen;
        used++;
    }
    table = other;
}

static struct seen *slot_for(uint64_t address) {
    struct seen *slot = slot_of(table, address);
    if (slot->address || used < SLOTS_MOST) return slot;
    renew();
    return used < SLOTS_MOST ? slot_of(table, address) : NULL;
}

/* --- records --- */

static uint8_t kind_of(const struct cupti_memory *record) {
    switch (record->memory_kind) {
    case CUPTI_MEMORY_PINNED:
        return SNAP_CUDA_PINNED;
    case CUPTI_MEMORY_DEVICE:
        return record->is_async ? SNAP_CUDA_POOL_MEMORY : SNAP_CUDA_DEVICE_MEMORY;
    case CUPTI_MEMORY_MANAGED:
        return SNAP_CUDA_MANAGED;
    default:
        return 0;
    }
}

bool seen_record(const struct cupti_memory *record, const char *source) {
    if (!record->address || (record->operation != CUPTI_ALLOCATION && record->operation != CUPTI_RELEASE)) return true;
    if (record->timestamp > newest) newest = record->timestamp;
    struct seen *slot = slot_for(record->address);
    if (!slot) return false;
    if (!slot->address) used++;
    if (slot->address && slot->timestamp > record->timestamp) return true;
    *slot = (struct seen){.address = record->address,
                          .bytes = record->bytes,
                          .timestamp = record->timestamp,
                          .context = record->context,
                          .device = (uint16_t)record->device,
                          .kind = kind_of(record),
                          .source = source_of(source),
                          .lives = record->operation == CUPTI_ALLOCATION};
    return true;
}

/* Contexts' numbers are not used again. Records of it may still be on their way. */
void seen_context_ended(uint32_t context) {
    if (ended_count < CONTEXTS) ended[ended_count++] = context;
}

static bool is_live(const struct seen *seen) {
    if (!seen->address || !seen->lives) return false;
    for (size_t i = 0; i < ended_count; i++)
        if (ended[i] == seen->context) return false;
    return true;
}

struct seen *seen_at(uint64_t address) {
    struct seen *seen = slot_of(table, address);
    return address && is_live(seen) && seen->kind ? seen : NULL;
}

void seen_all(void (*visit)(struct seen *seen, void *context), void *context) {
    for (size_t i = 0; i < SLOTS; i++)
        if (is_live(&table[i])) visit(&table[i], context);
}
