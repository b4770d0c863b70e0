/* index.h — a set of record ids that are found by the contents of their records. It is a hash table with open
 * addressing, and it grows.
 * In: the hash and the contents of a record. Out: the id of an equal record, or of the new record. Look-ups never wait.
 * Insertions wait for another thread only if the table is full.
 *
 * The index grows by a copy twice as large. The thread that copies puts SEALED into each slot without a record, so that
 * no other thread inserts there. A thread that meets SEALED goes on in the copy. (Method: the freezing of slots in
 * Cliff Click's lock-free hash table, 2007.)
 *
 * If two threads insert equal records at the same instant, both may succeed where the table grows, or where records
 * were taken out. So callers must expect twins: two equal records in the set. */
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
    /* equal: whether the record of an id equals the key. hash: the hash of an id's record; the copy into a larger table
     * needs it. */
    bool (*equal)(uint32_t id, const void *key);
    uint32_t (*hash)(uint32_t id);
    /* The address of an id's record, so that the processor can fetch it in time. */
    const void *(*record)(uint32_t id);
    /* Whether the table may grow by `bytes` bytes. NULL: it always may. If false, the table grows only when a sixteenth
     * of its slots or less is empty. */
    bool (*may_grow)(uint64_t bytes);
    uint32_t *tables[INDEX_LAST_BITS + 1]; /* tables[n] has 2^n slots */
    uint32_t bits, used;                   /* tables[bits] is in use; used: the number of its records */
    int32_t gone;                          /* about how many slots are GONE (index.c) */
    struct lock growing;                   /* held while a larger table is made, and by index_hold */
};

/* Makes the first table. False: there is no memory. */
bool index_begin(struct index *self);
/* The id of an equal record, or INDEX_NONE. */
uint32_t index_find(const struct index *self, uint32_t hash, const void *key);
/* Inserts `id`, whose record equals the key. If an equal record is there, returns its id and inserts nothing.
 * INDEX_NONE: there is no memory, or the wait for a larger table was too long. */
uint32_t index_insert(struct index *self, uint32_t hash, const void *key, uint32_t id);

/* The state of a walk through the whole index, in slices. It is all zero at the beginning. The caller holds the index
 * (index_hold) during each slice. If the index has grown between two slices, the walk begins anew. */
struct index_walk {
    /* bits: as in the index when the walk began. first: the slot at which the walk began. done: how many slots it has
     * passed. */
    uint32_t bits, first, done;
    uint32_t removed; /* records that the present slice took out */
    int32_t gone;     /* slots that became GONE in the present slice, minus those that became empty */
    bool dense;       /* more than half of the slots were filled when the walk began */
};
/* Does one slice of the walk, and returns whether the walk is complete. It takes out all records that are not in
 * `stay`, and adds their ids to `removed`. If `stay` is NULL, it takes out the records whose ids are in `removed`. A
 * thread that looked up a record before may still use that record. */
bool index_prune(struct index *self, const struct ids *stay, struct ids *removed, struct index_walk *walk);
/* Keeps the index from growing. False: the index is growing, or another caller holds it. */
bool index_hold(struct index *self);
void index_let_go(struct index *self);
/* Forgets all records, in a forked child. index_begin must follow. */
void index_reset(struct index *self);
/* Memory of the table in use, in bytes. */
uint64_t index_bytes(const struct index *self);

#pragma GCC visibility pop

#endif
