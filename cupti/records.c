/* records.c — see records.h. */
#include "cupti/records.h"

#include <string.h>

/* The shortest length that each kind of record can have: its length in CUPTI 11.2. */
enum { MEMORY_LEAST = offsetof(struct cupti_memory, pool.used), POOL_LEAST = offsetof(struct cupti_pool, used) };

static void read_memory(const void *at, size_t length, const struct records_readers *to) {
    struct cupti_memory record = {0};
    memcpy(&record, at, length < sizeof record ? length : sizeof record);
    if (length > MEMORY_LEAST) to->used();
    to->memory(&record);
}

static void read_pool(const void *at, size_t length, const struct records_readers *to) {
    struct cupti_pool record = {0};
    memcpy(&record, at, length < sizeof record ? length : sizeof record);
    if (length > POOL_LEAST) to->used();
    to->pool(&record);
}

static void records_read_one(const void *at, size_t length, const struct records_readers *to) {
    uint32_t kind = 0;
    if (length >= sizeof kind) memcpy(&kind, at, sizeof kind);
    if (kind == CUPTI_KIND_MEMORY2 && length >= MEMORY_LEAST)
        read_memory(at, length, to);
    else if (kind == CUPTI_KIND_MEMORY_POOL && length >= POOL_LEAST)
        read_pool(at, length, to);
    else
        to->unknown(kind);
}

/* Whether the record lies in the buffer, and after the previous record. If it did not, the loop below might read
 * outside the buffer, or never end. */
static bool comes_next(const uint8_t *record, const uint8_t *before, const uint8_t *buffer, size_t valid) {
    uintptr_t at = (uintptr_t)record, least = before ? (uintptr_t)before + 1 : (uintptr_t)buffer;
    return at >= least && at - (uintptr_t)buffer < valid;
}

void records_read(uint8_t *buffer, size_t valid, records_next *next, const struct records_readers *to) {
    void *record = NULL, *before = NULL;
    while (valid && next(buffer, valid, &record) == CUPTI_OK && comes_next(record, before, buffer, valid)) {
        if (before) records_read_one(before, (size_t)((uint8_t *)record - (uint8_t *)before), to);
        before = record;
    }
    if (before) records_read_one(before, (size_t)(buffer + valid - (uint8_t *)before), to);
}
