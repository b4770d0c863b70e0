/* owner.h — an owner by its id: a model, node, run, custom owner, or value of the store (a "state").
 * In: ids from tags. Out: the facts about an owner that hooks need, and its record in the ledger. Ids are never used
 * twice, so a thread that has an id may read without a lock at any time. An owner's keys, state, adopter and policy are
 * changed under owner_registry (owners.c). */
#ifndef MEMSTOW_OWNER_H
#define MEMSTOW_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/lock.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { OWNERS_LIMIT = 1 << SNAP_SITE_TAG_BITS };

struct owner {
    uint32_t kind; /* 0: no owner has this id (yet) */
    uint32_t policy, state, adopted_by;
    int32_t priority;
    uint32_t record;        /* 1 + the record's id in the present ledger; 0: no record */
    uint32_t next;          /* the next owner with the same hash of keys; 0: there is none */
    uint32_t scopes;        /* open scopes, over all threads */
    uint32_t used, idle;    /* used: 1 if a scope of the owner was opened or left since `used` was last read and
                             * cleared; idle: 1 if the program has promised that nobody reads or writes the owner's
                             * memory */
    uint32_t discards;      /* 1: the content of the owner's device memory need not be kept */
    uint32_t loads;         /* 1: the program says when it loads the owner (memstow_load_begin) */
    uint32_t outcome;       /* of a run */
    uint32_t number, first; /* of a run: how many runs came before it, and the first run of its group */
    uint64_t keys[2], begin_ns, end_ns, last_use_ns;
    const char *name, *origin;
};

extern struct lock owner_registry;
/* The number of runs so far. */
extern uint32_t owner_run_count;

/* Old runs form groups. The counts of dead stacks of all old runs of a group are kept at its first run. Returns the
 * first run of the group of `run`. 0: `run` is not old, or is that first run. */
uint32_t owner_first_of(uint32_t run);

/* The owner's kind; 0: there is no such owner. */
uint32_t owner_kind(uint32_t id);
/* The owner that now has this owner's memory: itself, or its adopter. */
uint32_t owner_final(uint32_t id);
bool owner_is_retired(uint32_t id);
bool owner_is_idle(uint32_t id);
bool owner_discards(uint32_t id);
bool owner_loads(uint32_t id);

/* Counts that a scope of the owner was opened (1) or left (-1). Returns the owner's kind; 0: there is no such owner.
 * Runs and states have no scopes. */
uint32_t owner_scope(uint32_t id, int change);

/* Makes records in the ledger for the owners of a tag that is about to be used. */
void owner_note(struct snap_tag tag);

/* Notes how many of the owner's bytes lie in files now, and how many of its device bytes are off the devices. */
void owner_note_stowed(uint32_t id, uint64_t in_files, uint64_t of_devices);
/* The highest id, plus one. */
uint32_t owner_count(void);
/* owner_known: NULL if no owner has this id (yet). owner_at also returns an owner that is gone or not yet complete. */
struct owner *owner_known(uint32_t id);
struct owner *owner_at(uint32_t id);

/* The caller holds the registry. owner_reserve returns memory for the owner with the next id (NULL: no memory, or no
 * more ids). When the caller has filled it in, owner_publish makes the owner visible. */
struct owner *owner_reserve(uint32_t id);
void owner_publish(uint32_t id);
/* Makes the owner's record in the ledger, if it has none. */
void owner_make_record(uint32_t id);
/* Writes the fields of the record that may change. */
void owner_note_state(const struct owner *owner);

#pragma GCC visibility pop

#endif
