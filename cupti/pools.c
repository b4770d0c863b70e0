/* pools.c — see pools.h. */
#include "cupti/pools.h"

#include <string.h>

enum { POOLS = 256 };

static struct pool pools[POOLS];
static size_t count;
static struct pools_told told;

void pools_tell(const struct pools_told *to) { told = *to; }

void pools_clear(void) {
    memset(pools, 0, sizeof pools);
    count = 0;
}

/* Returns the entry of the pool at this address. If there is none, makes one. The new entry takes the place of a pool
 * that is gone and has no memory in use, if there is such a pool. Returns NULL if the table is full. */
static struct pool *pool_at(uint64_t address) {
    struct pool *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (pools[i].address == address) return &pools[i];
        if (pools[i].died && !pools[i].used) found = &pools[i];
    }
    if (!found && count < POOLS) found = &pools[count++];
    if (found) *found = (struct pool){.address = address};
    return found;
}

/* Copies the figures of a record into the pool. Returns false if the pool has newer figures already. */
static bool pools_note(struct pool *pool, uint64_t when, uint32_t device, uint64_t reserved, uint64_t used) {
    if (when < pool->timestamp) return false;
    pool->timestamp = when;
    pool->device = (uint16_t)device;
    pool->reserved = reserved;
    pool->used = used;
    return true;
}

static void tell_figures(const struct pool *pool) {
    if (told.figures && !pool->born && !pool->died) told.figures(pool);
}

/* Notes that the program made the pool. Its address may be that of a pool that was destroyed before. */
static void is_born(struct pool *pool, uint64_t when) {
    if (pool->born && !pool->died && told.went) told.went(pool);
    pool->born = when ? when : 1;
    if (pool->died && pool->died > pool->born) return; /* the record of its end came first */
    pool->died = 0;
    if (told.came) told.came(pool);
}

static void pools_dies(struct pool *pool, uint64_t when) {
    bool there = pool->born && !pool->died && when >= pool->born;
    if (there && told.went) told.went(pool);
    if (there || !pool->born) pool->died = when ? when : 1;
}

bool pools_record(const struct cupti_pool *record) {
    if (record->type != CUPTI_POOL_LOCAL || !record->address) return true;
    struct pool *pool = pool_at(record->address);
    if (!pool) return false;
    bool latest = pools_note(pool, record->timestamp, record->device, record->size, record->used);
    if (record->operation == CUPTI_POOL_CREATED) is_born(pool, record->timestamp);
    if (record->operation == CUPTI_POOL_DESTROYED) pools_dies(pool, record->timestamp);
    if (latest) tell_figures(pool);
    return true;
}

bool pools_memory(const struct cupti_memory *record) {
    if (!record->is_async || record->pool.type != CUPTI_POOL_LOCAL || !record->pool.address) return true;
    struct pool *pool = pool_at(record->pool.address);
    if (pool && pools_note(pool, record->timestamp, record->device, record->pool.size, record->pool.used))
        tell_figures(pool);
    return pool != NULL;
}

void pools_all(void (*visit)(const struct pool *pool, void *context), void *context) {
    for (size_t i = 0; i < count; i++) visit(&pools[i], context);
}
