/* owners.h — who is registered: models, nodes, runs and customs, by id and by the program's keys.
 * In: what the program says through the ABI. Out: what is known of each, the ledger's OWNER records, and what each has.
 *
 * Everything is called outside of hooks, but for owners_kind, owners_final and owners_note. Changes are made by one
 * thread at a time; ids are never given twice, so that whoever has one may read at any time. In a forked child owners,
 * scopes and the run go on; their records come into its ledger when it first needs them. */
#ifndef MEMSTOW_OWNERS_H
#define MEMSTOW_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum { OWNERS_LIMIT = 1 << SNAP_SITE_TAG_BITS };

/* Id or -errno: see memstow.h. */
int64_t owners_open(uint32_t kind, const char *name, const char *origin, const uint64_t keys[2]);
int owners_adopt(uint32_t owner, uint32_t provisional);
int owners_retire(uint32_t owner);
int owners_policy(uint32_t owner, uint32_t policy, int32_t priority);
int owners_idle(uint32_t owner, bool idle);

/* Runs: the id of the new one, or -errno. */
int64_t owners_begin_run(const char *name);
int owners_end_run(uint32_t run, uint32_t outcome);

/* Of a run that ended so long ago that it is not looked at by itself any more: the run that what it had, and has no
 * more, is counted at. 0: there is none, or it is that itself. */
uint32_t owners_first_of(uint32_t run);

/* 0: there is no such owner. */
uint32_t owners_kind(uint32_t owner);
/* Who has all of it: itself, or who adopted it. */
uint32_t owners_final(uint32_t owner);
bool owners_is_retired(uint32_t owner);
bool owners_is_idle(uint32_t owner);

/* A scope of it was opened (1) or left (-1). Its kind; 0: there is no such owner. A run and a state have no scopes. */
uint32_t owners_scope(uint32_t owner, int change);

/* The tag is about to be used: its owners have records. */
void owners_note(struct snap_tag tag);

/* What there is to know of an owner for who decides what becomes of it (policy.h). */
struct owner_state {
    uint32_t id, kind, policy, adopted_by;
    int32_t priority;
    bool retired, scope_open, idle;
    uint64_t live_bytes, live_blocks, device_bytes; /* of the host; of devices, beside them */
    uint64_t movable_bytes, stowed_bytes;           /* of both */
    uint64_t device_movable_bytes, device_stowed_bytes;
    uint64_t last_use_ns;
};
/* All models and customs that nobody adopted and that have, or may get, anything; returns how many there are, and
 * writes at most `room`. */
uint32_t owners_list(struct owner_state *out, uint32_t room);
/* So much of it lies in files now, and so much of what it has in devices is out of them. */
void owners_note_stowed(uint32_t owner, uint64_t in_files, uint64_t of_devices);
int owners_figures(uint32_t owner, struct memstow_figures *out);

/* In a forked child: no owner has a record. */
void owners_abandon(void);

#pragma GCC visibility pop

#endif
