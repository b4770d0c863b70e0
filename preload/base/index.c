/* index.c — see index.h. */
#include "preload/base/index.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/shared/os.h"
#include "preload/base/lock.h"

/* What a slot contains in place of a record. EMPTY: nothing, and searches end here; ids begin at 1, so no
 * record looks like this. GONE: a record was taken out; searches for other records go on past this slot. SEALED:
 * nothing may be inserted any more (index.h). */
enum { EMPTY = 0, GONE = 1 << INDEX_ID_BITS };
#define SEALED UINT32_MAX

static uint32_t index_slot_for(uint32_t hash, uint32_t id) { return hash << INDEX_ID_BITS | id; }
static uint32_t id_in(uint32_t slot) { return slot & ((1u << INDEX_ID_BITS) - 1); }
static bool may_be(uint32_t slot, uint32_t hash) { return (slot ^ hash << INDEX_ID_BITS) >> INDEX_ID_BITS == 0; }

static uint32_t bits_of(const struct index *self) { return __atomic_load_n(&self->bits, __ATOMIC_ACQUIRE); }

/* The approximate number of slots that are not empty. `gone` is updated a little after the slots, and begins at 0 in a
 * new table. */
static uint64_t index_filled(const struct index *self) {
    int32_t gone = __atomic_load_n(&self->gone, __ATOMIC_RELAXED);
    return (uint64_t)__atomic_load_n(&self->used, __ATOMIC_RELAXED) + (gone > 0 ? (uint64_t)gone : 0);
}

/* Whether the table must grow, for one of two reasons. First: more than three quarters of the slots have records, and
 * may_grow allows it; slots that are GONE do not count, because they are used again. Second: a sixteenth of the slots
 * or less is empty, and a search ends only at an empty slot. */
static bool is_nearly_full(const struct index *self, uint32_t bits) {
    bool should_grow = 4 * (uint64_t)__atomic_load_n(&self->used, __ATOMIC_RELAXED) > 3ull << bits;
    return (should_grow && (!self->may_grow || self->may_grow(sizeof(uint32_t) << bits))) ||
           16 * index_filled(self) >= 15ull << bits;
}

static uint32_t *table_of(const struct index *self, uint32_t bits) {
    return bits <= INDEX_LAST_BITS ? __atomic_load_n(&self->tables[bits], __ATOMIC_ACQUIRE) : NULL;
}

/* Where the search for a hash begins. All bits of the hash choose the position, although a slot stores only the low 8
 * bits. */
static uint32_t index_slot_of(uint32_t hash, uint32_t bits) { return (hash * 0x9E3779B1u) >> (32 - bits); }

/* Searches from the hash's position on, up to the first slot that has an equal record, is empty, or is sealed. Returns
 * that slot. But if that slot is empty, and the search has passed a slot that is GONE, returns the first slot that is
 * GONE. *seen gets the content of the returned slot. */
static uint32_t *index_probe(const struct index *self, uint32_t *table, uint32_t bits, uint32_t hash, const void *key,
                             uint32_t *seen) {
    uint32_t mask = (1u << bits) - 1, *gone = NULL;
    for (uint32_t i = index_slot_of(hash, bits);; i = (i + 1) & mask) {
        uint32_t slot = *seen = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE);
        if (slot == GONE) {
            if (!gone) gone = &table[i];
        } else if (slot == EMPTY && gone) {
            *seen = GONE;
            return gone;
        } else if (slot == EMPTY || slot == SEALED || (may_be(slot, hash) && self->equal(id_in(slot), key))) {
            return &table[i];
        }
    }
}

static bool is_record(uint32_t slot) { return slot != EMPTY && slot != SEALED && slot != GONE; }

uint32_t index_find(const struct index *self, uint32_t hash, const void *key) {
    uint32_t *table, slot;
    for (uint32_t bits = bits_of(self); (table = table_of(self, bits)); bits++) {
        index_probe(self, table, bits, hash, key, &slot);
        if (is_record(slot)) return id_in(slot);
    }
    return INDEX_NONE;
}

/* --- growing: the table is copied into one twice as large --- */

bool index_hold(struct index *self) { return lock_try(&self->growing); }

void index_let_go(struct index *self) { lock_let_go(&self->growing); }

static void insert_copy(uint32_t *table, uint32_t bits, uint32_t hash, uint32_t id) {
    uint32_t mask = (1u << bits) - 1;
    for (uint32_t i = index_slot_of(hash, bits);; i = (i + 1) & mask) {
        uint32_t empty = EMPTY;
        if (__atomic_compare_exchange_n(&table[i], &empty, index_slot_for(hash, id), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return;
    }
}

/* Records are scattered in memory, so they are fetched before their hashes are computed. */
static void fetch_ahead(const struct index *self, const uint32_t *table, uint32_t bits, uint32_t i) {
    enum { AHEAD = 16 };
    uint32_t slot = __atomic_load_n(&table[(i + AHEAD) & ((1u << bits) - 1)], __ATOMIC_RELAXED);
    if (is_record(slot)) __builtin_prefetch(self->record(id_in(slot)));
}

static void copy_into_next(struct index *self, uint32_t bits) {
    uint32_t *from = self->tables[bits], *to = self->tables[bits + 1];
    for (uint32_t i = 0; i < 1u << bits; i++) {
        fetch_ahead(self, from, bits, i);
        uint32_t slot = EMPTY;
        while (!is_record(slot) &&
               !__atomic_compare_exchange_n(&from[i], &slot, SEALED, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ;
        if (!is_record(slot)) continue;
        uint32_t id = id_in(slot);
        insert_copy(to, bits + 1, self->hash(id), id);
    }
    __atomic_store_n(&self->gone, 0, __ATOMIC_RELAXED);
}

/* Makes a table twice as large, if it is still needed and there is memory. False: another thread holds the index. The
 * memory of the old table is given back: a thread that still reads the old table finds it empty, and goes on in the new
 * one. (An insertion into the old table at this instant is lost: its record gets a twin later, see index.h.) */
static bool index_grow(struct index *self) {
    if (!index_hold(self)) return false;
    uint32_t bits = bits_of(self);
    size_t length = sizeof(uint32_t) << (bits + 1);
    uint32_t *next = bits < INDEX_LAST_BITS && is_nearly_full(self, bits) ? arena_take_table(length) : NULL;
    if (next) {
        __atomic_store_n(&self->tables[bits + 1], next, __ATOMIC_RELEASE);
        copy_into_next(self, bits);
        __atomic_store_n(&self->bits, bits + 1, __ATOMIC_RELEASE);
        arena_drop(self->tables[bits], length / 2);
        arena_note_grown();
    }
    index_let_go(self);
    return true;
}

/* Whether an insertion can go on, in this table or in a larger one. A sixteenth of the slots stays empty, so that every
 * search ends. If the table is full, this thread makes a larger one, or waits until another thread has made it. False:
 * there is no memory, or the wait was too long. */
static bool has_table(struct index *self, uint32_t bits) {
    int turn = 0;
    do {
        if (16 * index_filled(self) < 15ull << bits || table_of(self, bits + 1)) return true;
        if (index_grow(self)) return table_of(self, bits + 1) != NULL;
    } while (lock_pause(turn++));
    return false;
}

uint32_t index_insert(struct index *self, uint32_t hash, const void *key, uint32_t id) {
    for (uint32_t bits = bits_of(self);;) {
        uint32_t seen, *at = index_probe(self, table_of(self, bits), bits, hash, key, &seen);
        if (is_record(seen)) return id_in(seen);
        if (!table_of(self, bits + 1) && !has_table(self, bits)) return INDEX_NONE;
        if (table_of(self, bits + 1)) {
            bits++;
            continue;
        }
        bool was_gone = seen == GONE;
        if (__atomic_compare_exchange_n(at, &seen, index_slot_for(hash, id), false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            if (was_gone) __atomic_fetch_sub(&self->gone, 1, __ATOMIC_RELAXED);
            break;
        }
    }
    __atomic_fetch_add(&self->used, 1, __ATOMIC_RELAXED);
    if (unlikely(is_nearly_full(self, bits_of(self)))) index_grow(self);
    return id;
}

/* --- a walk through the whole table, which takes records out --- */

enum { SLOTS_AT_A_TIME = 4096 };

/* Begins the walk, at an empty slot, if this is the first slice or the table has grown since the previous one. */
static void walk_on(const struct index *self, struct index_walk *walk) {
    uint32_t bits = bits_of(self), *table = table_of(self, bits);
    if (walk->bits == bits) return;
    *walk = (struct index_walk){.bits = bits, .dense = 2 * index_filled(self) > 1ull << bits};
    while (__atomic_load_n(&table[walk->first], __ATOMIC_RELAXED) != EMPTY) walk->first++;
}

/* Moves the record of slot i closer to the slot where a search for the record begins: to the first slot from there on
 * that has no record, if this slot comes before i. The record is written there before it is removed from slot i. Even
 * so, another thread may miss the record: it reads the new slot before the record is there, and slot i after the record
 * was removed. Then that thread may insert a second record with the same contents (a twin). */
static void move_up(const struct index *self, uint32_t *table, uint32_t i, struct index_walk *walk) {
    uint32_t mask = (1u << walk->bits) - 1, slot = table[i];
    for (uint32_t k = index_slot_of(self->hash(id_in(slot)), walk->bits); k != i; k = (k + 1) & mask) {
        uint32_t there = __atomic_load_n(&table[k], __ATOMIC_RELAXED);
        if (is_record(there) ||
            !__atomic_compare_exchange_n(&table[k], &there, slot, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&table[i], GONE, __ATOMIC_RELEASE);
        walk->gone += there == EMPTY;
        return;
    }
}

/* Makes slots that are GONE empty, so that searches do not become longer and longer. It goes from the end of a cluster
 * (a row of filled slots between two empty slots) towards the cluster's beginning. In a table that is not dense, it
 * stops at the first record that it meets: a search for that record may pass slots before the record, and would end at
 * a slot that was made empty.
 *
 * Other threads may insert meanwhile. If a thread's search passes a slot that is GONE, the thread inserts in that slot
 * or before it, never behind it. So later searches find the new record, even if the slot is made empty.
 *
 * But a slot may become GONE after a thread's search has passed it. Then the thread may insert a record behind that
 * slot. When the slot is made empty, searches end there, and do not find the record until the record moves up. So the
 * record may get a twin: a second record with the same contents. */
static void index_sweep(uint32_t *table, uint32_t from, uint32_t end, struct index_walk *walk) {
    uint32_t mask = (1u << walk->bits) - 1;
    while (end != from) {
        uint32_t gone = GONE;
        end = (end - 1) & mask;
        if (__atomic_load_n(&table[end], __ATOMIC_RELAXED) == GONE &&
            __atomic_compare_exchange_n(&table[end], &gone, EMPTY, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            walk->gone--;
        else if (!walk->dense)
            return;
    }
}

/* Takes records out of the cluster that begins at slot `from` (see index_prune). Returns how many slots it has passed,
 * including the empty slot at the end. In a dense table, the records that stay move up, so that no search for them
 * passes a slot that is GONE, and index_sweep can make all these slots empty. Moving takes longer, because it needs the
 * hashes of the records. */
static uint32_t prune_cluster(const struct index *self, uint32_t from, const struct ids *stay, struct ids *removed,
                              struct index_walk *walk) {
    uint32_t *table = table_of(self, walk->bits), mask = (1u << walk->bits) - 1, i = from, slot, passed = 1;
    bool any_gone = false;
    for (; (slot = __atomic_load_n(&table[i], __ATOMIC_ACQUIRE)) != EMPTY; i = (i + 1) & mask, passed++) {
        if (walk->dense) fetch_ahead(self, table, walk->bits, i);
        if (slot == GONE) {
            any_gone = true;
        } else if (stay ? !ids_has(stay, id_in(slot)) : ids_has(removed, id_in(slot))) {
            ids_mark(removed, id_in(slot));
            __atomic_store_n(&table[i], GONE, __ATOMIC_RELEASE);
            walk->removed++;
            walk->gone++;
            any_gone = true;
        } else if (any_gone && walk->dense) {
            move_up(self, table, i, walk);
        }
    }
    if (any_gone) index_sweep(table, from, i, walk);
    return passed;
}

bool index_prune(struct index *self, const struct ids *stay, struct ids *removed, struct index_walk *walk) {
    walk_on(self, walk);
    uint32_t mask = (1u << walk->bits) - 1;
    walk->removed = 0;
    walk->gone = 0;
    for (uint32_t passed = 0; passed < SLOTS_AT_A_TIME && walk->done <= mask;) {
        uint32_t length = prune_cluster(self, (walk->first + 1 + walk->done) & mask, stay, removed, walk);
        walk->done += length;
        passed += length;
    }
    __atomic_fetch_sub(&self->used, walk->removed, __ATOMIC_RELAXED);
    __atomic_fetch_add(&self->gone, walk->gone, __ATOMIC_RELAXED);
    return walk->done > mask;
}

bool index_begin(struct index *self) {
    self->bits = INDEX_FIRST_BITS;
    self->tables[self->bits] = arena_take(sizeof(uint32_t) << INDEX_FIRST_BITS);
    return self->tables[self->bits] != NULL;
}

void index_reset(struct index *self) {
    memset(self->tables, 0, sizeof self->tables);
    self->bits = self->used = 0;
    self->gone = 0;
    self->growing = (struct lock){0};
}

uint64_t index_bytes(const struct index *self) { return sizeof(uint32_t) << bits_of(self); }
