// A table of records: inserted records are found, and removed records are not. However often records come and go, the
// table takes no more room.
#include <criterion/criterion.h>
#include <stdlib.h>

#include "preload/base/index.h"
#include "preload/ledger/ledger.h"

enum { IDS = 80000, ROUNDS = 40 };

static uint64_t contents[IDS + 1]; /* content of the record with this id */

static uint32_t hash_of(uint64_t content) { return (uint32_t)((content * 0x9E3779B97F4A7C15u) >> 32); }
static bool equal(uint32_t id, const void *key) { return contents[id] == *(const uint64_t *)key; }
static uint32_t hash(uint32_t id) { return hash_of(contents[id]); }
static const void *record(uint32_t id) { return &contents[id]; }

static uint32_t find(struct index *index, uint64_t content) { return index_find(index, hash_of(content), &content); }

static void prune(struct index *index, const struct ids *stay, struct ids *removed) {
    struct index_walk walk = {0};
    cr_assert(index_hold(index));
    while (!index_prune(index, stay, removed, &walk))
        ;
    index_let_go(index);
}

/* In rounds with an even number, three of four records are removed. In the other rounds, one of 16 is removed. */
static bool stays(uint32_t id, int round) { return round % 2 ? id % 16 : id % 4 == 0; }

Test(index, keeps_no_traces_of_what_was_taken_out) {
    struct ledger_identity who = {.name = "unit", .exe = "unit", .command = "unit"};
    struct index index = {.equal = equal, .hash = hash, .record = record};
    cr_assert(ledger_begin(&who) && index_begin(&index));
    struct ids *stay = ids_new(), *removed = ids_new();
    uint64_t next = 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t id = 1; id <= IDS; id++) {
            if (contents[id]) continue;
            contents[id] = next++;
            cr_assert_eq(index_insert(&index, hash(id), &contents[id], id), id);
            cr_assert_eq(index_insert(&index, hash(id), &contents[id], id + 1), id, "it is there");
        }
        cr_assert_eq(index.used, IDS);
        ids_clear(stay);
        ids_clear(removed);
        for (uint32_t id = 1; id <= IDS; id++)
            if (stays(id, round)) ids_mark(stay, id);
        prune(&index, stay, removed);
        for (uint32_t id = 1; id <= IDS; id++) {
            cr_assert_eq(ids_has(removed, id), !stays(id, round));
            cr_assert_eq(find(&index, contents[id]), stays(id, round) ? id : INDEX_NONE);
            if (!stays(id, round)) contents[id] = 0;
        }
    }
    cr_assert_eq(1u << index.bits, 131072u, "it does not grow for what is gone");
    cr_assert_eq(index.gone, 0);
}
