/* series.c — see series.h. */
#include "preload/ledger/series.h"

#include <string.h>

#include "preload/base/lock.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_inside.h"

static uint32_t segment_first(const struct series *self, uint32_t k) {
    return (uint32_t)(((uint64_t)1 << (self->first_bits + k)) - (1u << self->first_bits));
}

static bool make_segment(struct series *self, uint32_t k) {
    if (!lock_wait(&ledger_growing)) return false;
    if (!self->segments[k]) {
        struct snap_section *section =
            ledger_carve(self->type, self->record_size, (uint64_t)1 << (self->first_bits + k), segment_first(self, k));
        if (section) {
            self->sections[k] = section;
            if (self->anchored) *(uint64_t *)(void *)(section + 1) = (uintptr_t)(section + 1);
            __atomic_store_n(&self->segments[k], (char *)(section + 1), __ATOMIC_RELEASE);
        }
    }
    lock_let_go(&ledger_growing);
    return self->segments[k] != NULL;
}

bool series_reserve(struct series *self, uint32_t id) {
    uint32_t k = series_slot(self, id).segment;
    if (id >= self->limit || k >= SERIES_SEGMENTS) return false;
    if (likely(__atomic_load_n(&self->segments[k], __ATOMIC_ACQUIRE)) || make_segment(self, k)) return true;
    ledger_lost(SNAP_LOST_FILE);
    return false;
}

uint32_t series_take_run(struct series *self, uint32_t count) {
    uint64_t next = os_load(&self->next), first;
    uint32_t k;
    do {
        if (next + 2 * (uint64_t)count > self->limit || !ledger_is_ours() || !series_reserve(self, (uint32_t)next))
            return SERIES_NONE;
        k = series_slot(self, (uint32_t)next).segment;
        first = next;
        if (next + count > segment_first(self, k + 1)) { /* the records do not fit into the rest of their segment */
            first = segment_first(self, ++k);
            if (!series_reserve(self, (uint32_t)first)) return SERIES_NONE;
        }
    } while (!__atomic_compare_exchange_n(&self->next, &next, first + count, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    if (first > next) os_raise(&self->sections[k - 1]->count, first - segment_first(self, k - 1));
    os_raise(&self->sections[k]->count, first + count - segment_first(self, k));
    return (uint32_t)first;
}

uint32_t series_take(struct series *self) {
    uint64_t next = os_load(&self->next);
    do
        if (next >= self->limit || !ledger_is_ours() || !series_reserve(self, (uint32_t)next)) return SERIES_NONE;
    while (!__atomic_compare_exchange_n(&self->next, &next, next + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    struct series_slot slot = series_slot(self, (uint32_t)next);
    os_raise(&self->sections[slot.segment]->count, slot.record + 1);
    return (uint32_t)next;
}

uint32_t series_id(const struct series *self, const void *record) {
    for (uint32_t k = 0; k < SERIES_SEGMENTS && self->segments[k]; k++) {
        size_t offset = (size_t)((const char *)record - self->segments[k]);
        if (offset < (size_t)self->record_size << (self->first_bits + k))
            return segment_first(self, k) + (uint32_t)(offset / self->record_size);
    }
    return SERIES_NONE;
}

void series_reset(struct series *self) {
    self->next = 0;
    memset(self->segments, 0, sizeof self->segments);
    memset(self->sections, 0, sizeof self->sections);
}
