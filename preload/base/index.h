/* index.h — a set of record ids that are found by the contents of their records: open addressing, lock-free, growing.
 * In: a hash and a comparison. Out: the id of an equal record, or the new one's.
 *
 * The index grows by a copy twice as large. The thread that copies puts SEALED into each empty slot first, so that no
 * thread inserts where the copy has passed. A thread that meets SEALED goes on in the copy. (Method: the freezing of
 * slots in Cliff Click's lock-free hash table, 2007.)
 *
 * Two threads that insert equal records at the same instant may both succeed, where the table grows or where records
 * were taken out: callers must expect twins. */
#ifndef MEMSTOW_INDEX_H
#define MEMSTOW_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/ids.h"
#include "preload/base/lock.h"

#pragma GCC visibility push(hidden)

enum {
    INDEX_ID_BITS = 24, /* a slot: 8 bits of the hash, and the id */
    INDEX_FIRST_BITS = 10,
    INDEX_LAST_BITS = 25,
    INDEX_NONE = UINT32_MAX,
};

struct index {
    /* Whether the record of an id equals the key; the hash of the record of an id, for copying. */
    bool (*equal)(uint32_t id, const void *key);
    uint32_t (*hash)(uint32_t id);
    /* The address of an id's record, so that the processor can fetch it in time. */
    const void *(*record)(uint32_t id);
    /* Whether there is memory for a larger table; NULL: always. If there is none, the table becomes fuller than it
     * should. */
    bool (*may_grow)(uint64_t bytes);
    uint32_t *tables[INDEX_LAST_BITS + 1]; /* by the logarithm of the size; the last one is in use */
    uint32_t bits, used;
    int32_t gone;
    struct lock growing;
};

/* Makes the first table. False: there is no memory. */
bool index_begin(struct index *self);
/* The id of an equal record, or INDEX_NONE. */
uint32_t index_find(const struct index *self, uint32_t hash, const void *key);
/* Inserts `id`, whose record equals the key. If an equal record is there, returns its id and inserts nothing.
 * INDEX_NONE: no memory. */
uint32_t index_insert(struct index *self, uint32_t hash, const void *key, uint32_t id);

/* A walk through the whole index, in slices: each call says whether it is done. The caller holds the index during each
 * call. If the index has grown in between, the walk begins anew. All zero: at the beginning. */
struct index_walk {
    uint32_t bits, first, done;
    uint32_t removed;
    int32_t gone; /* slots that became GONE */
    bool dense;
};
/* Takes out all records that are not in `stay`, and adds them to `removed`. If `stay` is NULL, it takes out those in
 * `removed`. A thread that looked up a record before may still use it. */
bool index_prune(struct index *self, const struct ids *stay, struct ids *removed, struct index_walk *walk);
/* Keeps the index from growing. False: it is growing, or is held. */
bool index_hold(struct index *self);
void index_let_go(struct index *self);
/* Forgets all, in a forked child. index_begin must follow. */
void index_reset(struct index *self);
/* Memory of the table in use, in bytes. */
uint64_t index_bytes(const struct index *self);

#pragma GCC visibility pop

#endif
