/* owner.h — an owner by its id: a model, a node, a run, a custom or a state. In: ids of tags. Out: the facts about an
 * owner that hooks need, and its record in the ledger. Ids are never given twice, so a thread with an id may read at
 * any time, without a lock. A thread that changes an owner holds owner_registry (owners.c). */
#ifndef MEMSTOW_OWNER_H
#define MEMSTOW_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/lock.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { OWNERS_LIMIT = 1 << SNAP_SITE_TAG_BITS };

struct owner {
    uint32_t kind; /* 0: there is none (yet) */
    uint32_t policy, state, adopted_by;
    int32_t priority;
    uint32_t record;     /* 1 + id in the present ledger; 0: it has none */
    uint32_t next;       /* owner with the same hash of keys; 0: the last */
    uint32_t scopes;     /* open, of all threads */
    uint32_t used, idle; /* used: since it was last asked */
    uint32_t outcome;
    uint32_t number, first; /* of a run: how many there were before; the first of those that it will be together with */
    uint64_t keys[2], begin_ns, end_ns, last_use_ns;
    const char *name, *origin;
};

extern struct lock owner_registry;
/* How many runs there ever were. */
extern uint32_t owner_run_count;

/* For a run that ended long ago: the run at which its dead memory is counted, together with that of other old runs. 0:
 * there is none, or it is this run itself. */
uint32_t owner_first_of(uint32_t run);

/* 0: there is no such owner. */
uint32_t owner_kind(uint32_t owner);
/* The owner that has all of it: itself, or its adopter. */
uint32_t owner_final(uint32_t owner);
bool owner_is_retired(uint32_t owner);
bool owner_is_idle(uint32_t owner);

/* A scope of it was opened (1) or left (-1). Its kind; 0: there is no such owner. A run and a state have no scopes. */
uint32_t owner_scope(uint32_t owner, int change);

/* The tag is about to be used: its owners have records. */
void owner_note(struct snap_tag tag);

/* Notes how much of it lies in files now, and how much of its device memory is out of the devices. */
void owner_note_stowed(uint32_t owner, uint64_t in_files, uint64_t of_devices);
/* One past the last id. */
uint32_t owner_count(void);
/* NULL: there is none of that id (yet). The second also gives one that is not there any more, or not yet whole. */
struct owner *owner_known(uint32_t id);
struct owner *owner_at(uint32_t id);

/* The registry is held. A place for the next id, NULL: no memory or no more ids; and that it is whole. */
struct owner *owner_make_room(uint32_t id);
void owner_publish(uint32_t id);
/* Its record, unless it has one; and what may change in it. */
void owner_make_record(uint32_t id);
void owner_note_state(const struct owner *owner);

#pragma GCC visibility pop

#endif
