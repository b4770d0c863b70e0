/* slots.h — finds the records of an array by their contents.
 * In: hashes of records, and their indices. Out: a hash table with open addressing: each slot has 1 + the index of a
 * record, or 0 if it is free. A look-up begins at slots_first and goes on with slots_next, until it meets the record or
 * a free slot. */
#ifndef MEMSTOW_SLOTS_H
#define MEMSTOW_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct slots {
    uint32_t *list;
    size_t count; /* a power of two, or 0 */
};

static inline size_t slots_first(const struct slots *self, uint64_t hash) { return hash & (self->count - 1); }
static inline size_t slots_next(const struct slots *self, size_t slot) { return (slot + 1) & (self->count - 1); }

/* Replaces all slots by free slots, twice as many as `capacity`. `capacity` must be a power of two. Returns false if
 * there is no memory; in that case there are no slots. */
static inline bool slots_renew(struct slots *self, size_t capacity) {
    free(self->list);
    self->list = calloc(capacity, 2 * sizeof *self->list);
    self->count = self->list ? 2 * capacity : 0;
    return self->list;
}

/* Enters a record that has no slot yet. */
static inline void slots_enter(struct slots *self, uint64_t hash, size_t index) {
    size_t slot = slots_first(self, hash);
    while (self->list[slot]) slot = slots_next(self, slot);
    self->list[slot] = (uint32_t)index + 1;
}

#endif
