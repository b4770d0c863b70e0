/* seen.c — see seen.h. Records do not come in the order of the calls, and their times do not give that order:
 * - CUPTI hands over the buffers of several threads one after the other. So the record of a free may come before the
 *   record of its allocation. The record of the next allocation at that address may come before both.
 * - The time of a record is when its call began. If two threads make calls about one address, the call that took effect
 *   later may have begun first.
 *
 * So the counts of allocations and frees at an address decide whether a block lives there. Times only decide which
 * block lives. Freed blocks stay in the table for a while. */
#include "cupti/seen.h"

#include <stdlib.h>
#include <string.h>

#include "preload/shared/snapshot.h"

enum { SLOTS = 1 << 16, SLOTS_MOST = SLOTS / 4 * 3, CONTEXTS = 64 };
#define LATE_NS 2000000000ull /* a record is at most this much older than records that came before it */

static struct seen tables[2][SLOTS], *table = tables[0];
static size_t used;
/* newest: the latest time in any record so far; renewed: `newest` when the table was last renewed */
static uint64_t newest, renewed;
static char sources[SEEN_SOURCES][SEEN_SOURCE_LENGTH];
static size_t source_count = 1; /* index 0: no source */
static uint32_t ended[CONTEXTS];
static size_t ended_count;
static struct seen_told told;

void seen_tell(const struct seen_told *to) { told = *to; }

void seen_clear(void) {
    memset(tables, 0, sizeof tables);
    table = tables[0];
    used = 0;
    newest = renewed = 0;
    source_count = 1;
    ended_count = 0;
}

/* --- libraries that make calls --- */

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

/* --- the table: a slot becomes empty only when blocks are copied into the other table --- */

static struct seen *slot_of(struct seen *in, uint64_t address) {
    size_t i = (size_t)(address * 0x9E3779B97F4A7C15ull >> 48) % SLOTS;
    while (in[i].address && in[i].address != address) i = (i + 1) % SLOTS;
    return &in[i];
}

static uint64_t latest_of(const struct seen *seen) {
    return seen->released > seen->timestamp ? seen->released : seen->timestamp;
}

/* Copies the table into the other one, without blocks that were freed more than LATE_NS ago. It does nothing if there
 * can be no such blocks yet. */
static void seen_renew(void) {
    if (renewed && newest < renewed + LATE_NS) return;
    renewed = newest;
    struct seen *other = table == tables[0] ? tables[1] : tables[0];
    memset(other, 0, sizeof tables[0]);
    used = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        const struct seen *seen = &table[i];
        if (!seen->address || (!seen->lives && latest_of(seen) + LATE_NS < newest)) continue;
        *slot_of(other, seen->address) = *seen;
        used++;
    }
    table = other;
}

static struct seen *seen_slot_for(uint64_t address) {
    struct seen *slot = slot_of(table, address);
    if (slot->address || used < SLOTS_MOST) return slot;
    seen_renew();
    return used < SLOTS_MOST ? slot_of(table, address) : NULL;
}

/* --- reading records --- */

static uint8_t seen_kind_of(const struct cupti_memory *record) {
    switch (record->memory_kind) {
    case CUPTI_MEMORY_PINNED:
        return SNAP_CUDA_PINNED;
    case CUPTI_MEMORY_DEVICE:
        return record->is_async ? SNAP_CUDA_POOL_MEMORY : SNAP_CUDA_DEVICE_MEMORY;
    case CUPTI_MEMORY_ARRAY:
        return SNAP_CUDA_ARRAY;
    case CUPTI_MEMORY_MANAGED:
        return SNAP_CUDA_MANAGED;
    default:
        return 0;
    }
}

static bool is_of_context(uint8_t kind) { return kind != SNAP_CUDA_POOL_MEMORY; }

static bool has_ended(uint32_t context) {
    for (size_t i = 0; i < ended_count && i < CONTEXTS; i++)
        if (ended[i] == context) return true;
    return false;
}

/* The contents of the slot for the block of this record. */
static struct seen block_of(const struct seen *slot, const struct cupti_memory *record, const char *source) {
    return (struct seen){.address = record->address,
                         .bytes = record->bytes,
                         .timestamp = record->timestamp,
                         .released = slot->released,
                         .context = record->context,
                         .device = (uint16_t)record->device,
                         .kind = seen_kind_of(record),
                         .source = source_of(source),
                         .owed = slot->owed};
}

static void seen_come(struct seen *slot, const struct seen *block, const struct cupti_memory *record) {
    *slot = *block;
    slot->lives = true;
    if (told.came) told.came(slot, record);
}

static void seen_go(struct seen *slot) {
    slot->lives = slot->suspect = slot->matched = false;
    if (told.went) told.went(slot);
}

static void seen_pass(const struct seen *block, const struct cupti_memory *record) {
    if (told.passed) told.passed(block, record);
}

/* Records an allocation at an address whose slot has a block that seems to live. Only one of the two blocks can live,
 * so the earlier one was freed. The record of this free has not come yet: one more record is owed. */
static void allocate_again(struct seen *slot, struct seen *block, const struct cupti_memory *record) {
    bool earlier = block->timestamp < slot->timestamp;
    block->owed = (int8_t)(slot->owed < INT8_MAX ? slot->owed + 1 : slot->owed);
    if (earlier) {
        slot->owed = block->owed;
        seen_pass(block, record);
        return;
    }
    seen_go(slot);
    seen_come(slot, block, record);
}

static void seen_allocated(struct seen *slot, const struct cupti_memory *record, const char *source) {
    struct seen block = block_of(slot, record, source);
    bool ahead = slot->owed < 0;
    if (ahead && record->timestamp > slot->released + LATE_NS) { /* the record of the freed block was lost */
        slot->owed = block.owed = 0;
        ahead = false;
    }
    if (slot->lives) {
        allocate_again(slot, &block, record);
    } else if (ahead && record->timestamp <= slot->released) {
        slot->owed++;
        seen_pass(&block, record);
    } else if (is_of_context(block.kind) && has_ended(block.context)) {
        seen_pass(&block, record);
    } else {
        seen_come(slot, &block, record);
    }
}

/* Whether a free at this address freed an earlier block than the live one. `when`: the time at which the free began.
 * - If `owed` is above 0, records of frees of earlier blocks are still to come, and this free counts as one of them.
 *   But if the free began more than LATE_NS after the allocation of the live block, those records were lost, and the
 *   free is that of the live block.
 * - If `owed` is not above 0, the free is that of an earlier block if it began before the allocation of the live block.
 *   Exception: the record of a free that began after this allocation has come already. That record was perhaps counted
 *   as the free of an earlier block, so the present record counts as the free of the live block. */
static bool is_of_another(const struct seen *slot, uint64_t when) {
    if (slot->owed > 0) return when <= slot->timestamp + LATE_NS;
    return when < slot->timestamp && slot->released <= slot->timestamp;
}

static void seen_released(struct seen *slot, const struct cupti_memory *record) {
    uint64_t when = record->timestamp;
    if (!slot->lives || is_of_another(slot, when)) {
        if (slot->owed > INT8_MIN) slot->owed--;
    } else {
        if (slot->owed > 0) slot->owed = 0;
        seen_go(slot);
    }
    if (when > slot->released) slot->released = when;
}

bool seen_record(const struct cupti_memory *record, const char *source) {
    if (!record->address || (record->operation != CUPTI_ALLOCATION && record->operation != CUPTI_RELEASE)) return true;
    if (record->timestamp > newest) newest = record->timestamp;
    struct seen *slot = seen_slot_for(record->address);
    if (!slot) return false;
    if (!slot->address) used++;
    if (record->operation == CUPTI_ALLOCATION)
        seen_allocated(slot, record, source);
    else
        seen_released(slot, record);
    slot->address = record->address;
    return true;
}

/* Ends all live blocks of the context. Memory of pools belongs to no context (is_of_context), so it stays. Records of
 * allocations in the context may still come; their blocks are gone, too. So the CONTEXTS contexts that ended most
 * recently are remembered. A new context never has the number of an ended one, so the two cannot be confused. */
void seen_context_ended(uint32_t context) {
    ended[ended_count++ % CONTEXTS] = context;
    for (size_t i = 0; i < SLOTS; i++)
        if (table[i].lives && table[i].context == context && is_of_context(table[i].kind)) seen_go(&table[i]);
}

bool seen_is_compared(const struct seen *seen) { return seen->kind && seen->kind != SNAP_CUDA_ARRAY; }

struct seen *seen_at(uint64_t address) {
    struct seen *seen = slot_of(table, address);
    return address && seen->lives && seen_is_compared(seen) ? seen : NULL;
}

void seen_all(void (*visit)(struct seen *seen, void *context), void *context) {
    for (size_t i = 0; i < SLOTS; i++)
        if (table[i].lives) visit(&table[i], context);
}
