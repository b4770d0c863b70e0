/* state_value.h — one value of the store: its bytes, the owner for which the ledger counts them, and the list that the
 * value is in.
 * In: ids and lists of values. Out: a new value, which has no bytes yet; the value that a list has for an id. The bytes
 * of a value that nobody uses any more are freed. This file does not know which loop a value belongs to. No hook may
 * call its functions. */
#ifndef MEMSTOW_STATE_VALUE_H
#define MEMSTOW_STATE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/base/lock.h"
#include "preload/stacks/stack.h"
#include "preload/state/state_bytes.h"

#pragma GCC visibility push(hidden)

struct state_value {
    struct state_value *next; /* in the loop's list, or in the list of unused values */
    uint32_t holders;         /* how many use the value: the list that has it, a thread that moves it */
    uint32_t owner;
    bool moving, linked; /* moving: a thread moves the bytes; linked: their file has a name */
    uint64_t generation, bytes;
    char id[MEMSTOW_STATE_ID + 8], type[MEMSTOW_STATE_TYPE];
    uint32_t parts;
    struct state_bytes data;
};

/* Locked while lists of values or of loops are changed, and while the list of loops is read. A thread that reads a
 * loop's values holds this lock or the loop's. */
extern struct lock state_registry;

/* Makes a value with one holder and without bytes. Returns NULL if there is no memory. */
struct state_value *state_value_new(void);
/* Counts the value's bytes for its owner, at the caller's call stack. */
void state_value_count(const struct state_value *value, struct caller caller);
/* Ends the use by one holder. When no holder is left, the bytes are freed. */
void state_value_drop(struct state_value *value);
/* Fills in everything of `out` but the view. */
void state_value_describe(const struct state_value *value, struct memstow_state_value *out);
/* The value's bytes if they lie in a file; else 0. */
uint64_t state_value_stowed(const struct state_value *value);

/* Returns the address of the list's pointer to the value with this id. If there is no such value, returns the address
 * of the list's last pointer, which is NULL. */
struct state_value **state_value_find(struct state_value **list, const char *id);
/* Takes the value with this id out of the list. NULL: it is not there. */
struct state_value *state_value_take(struct state_value **list, const char *id);

#pragma GCC visibility pop

#endif
