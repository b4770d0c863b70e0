/* state_owner.h — the owners of values: each id of a loop has an owner.
 * In: ids. Out: owners, and bytes. Through the pointers in state_owner_store, code that knows no loops asks how many
 * bytes an owner has in the store, and moves the owner's values to files or back. Meanwhile other threads may read the
 * values. No hook may call these functions. */
#ifndef MEMSTOW_STATE_OWNER_H
#define MEMSTOW_STATE_OWNER_H

#include <stdint.h>

#include "preload/owners/owned.h"
#include "preload/state/state_loop.h"

#pragma GCC visibility push(hidden)

/* The owner of an id, or -errno. Registers a new owner if the id has none. */
int64_t state_owner_open(const struct state_loop *loop, const char *id);
/* Tells the ledger how many of the owner's bytes lie in files. */
void state_owner_note_stowed(uint32_t owner);

extern const struct owned_store state_owner_store;

#pragma GCC visibility pop

#endif
