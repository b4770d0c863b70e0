/* owners.h — the registered owners by id and by the program's keys: models, nodes, runs, customs and values of the
 * store.
 * In: calls of the ABI and of the store. Out: the facts about each owner, its memory, and the ledger's OWNER records.
 *
 * Call everything outside of hooks. Ids are never used twice, so a thread that has an id may read at any time. A forked
 * child keeps the owners, the run, and the scopes of the thread that forked. The records of owners enter the child's
 * ledger when they are first needed. */
#ifndef MEMSTOW_OWNERS_H
#define MEMSTOW_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/count/owner.h"
#include "preload/shared/policy.h"

#pragma GCC visibility push(hidden)

/* Finds the owner with this kind and these keys, or makes it. Returns its id or -errno, as memstow_owner_open does. */
int64_t owners_open(uint32_t kind, const char *name, const char *origin, const uint64_t keys[2]);
/* owners_adopt: all memory of the owner `provisional` becomes that of the owner `id`. owners_retire: the program says
 * that the owner is gone. Both return 0 or -errno. */
int owners_adopt(uint32_t id, uint32_t provisional);
int owners_retire(uint32_t id);
/* Sets the policy and priority of an owner. Returns 1 if they have changed, 0 if they were the same, or -errno. */
int owners_policy(uint32_t id, uint32_t policy, int32_t priority);
/* owners_idle: sets whether nobody reads or writes the owner's memory. owners_discard: sets whether the content of its
 * device memory need not be kept. owners_load: call it when the program begins to load the owner
 * (memstow_load_begin). From then on, memstow serves device memory for the owner only on threads that are loading.
 * All three return 0 or -errno. */
int owners_idle(uint32_t id, bool idle);
int owners_discard(uint32_t id, bool discard);
int owners_load(uint32_t id);

/* Begins a run. Returns its id, or -errno. */
int64_t owners_begin_run(const char *name);
int owners_end_run(uint32_t run, uint32_t outcome);

/* Lists the models, customs and values of the store that are not adopted, and are live or have memory. Writes the first
 * `capacity` of them to `out`, and returns how many there are in all. Also returns 0 if there is no memory for the
 * sums. */
uint32_t owners_list(struct owner_state *out, uint32_t capacity);
/* Writes the owner's figures to `out`; out->size stays as it is. Returns 0 or -errno. */
int owners_figures(uint32_t id, struct memstow_figures *out);

#pragma GCC visibility pop

#endif
