/* state_loop.h — the loops of the store, each with its present values. A loop is work that the program does again and
 * again, each time with values of the last time.
 * In: names and numbers of loops. Out: a loop that the caller alone may change, even while the caller writes to a disk;
 * a walk through the values of all loops. Whoever needs the locks of a loop and of the registry (state_value.h) takes
 * the loop's lock first. No hook may call these functions. */
#ifndef MEMSTOW_STATE_LOOP_H
#define MEMSTOW_STATE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/base/lock.h"
#include "preload/state/state_files.h"
#include "preload/state/state_store.h"
#include "preload/state/state_value.h"

#pragma GCC visibility push(hidden)

struct state_loop {
    struct state_loop *next;
    struct lock changes;
    int64_t number;      /* 0: the structure is unused */
    bool begun, in_file; /* in_file: values go to files, not to memory */
    uint64_t generation, ram_limit;
    uint64_t promised; /* the bytes of values that are being written into memory now and are in no list yet */
    struct state_value *committed, *put; /* put: values of the present iteration */
    struct state_value *dropped;         /* values in no other list; they are dropped at the end of the change */
    struct state_files files;
    char name[STATE_LOOP_SIZE], directory[STATE_PATH_SIZE], prefix[STATE_PATH_SIZE];
};

/* Makes a loop with this name and without values, and locks it. 0 or -errno, as for memstow_state_open. */
int state_loop_reserve(const char *name, const struct memstow_state_options *options, struct state_loop **out);
/* Drops all values, retires their owners and lets the lock go. `keep`: files below a prefix stay. */
void state_loop_free(struct state_loop *loop, bool keep);

/* Locks the loop with this number. 0: the caller has the lock. -ENOENT: there is no such loop. */
int state_loop_begin_change(int64_t number, struct state_loop **out);
/* Takes a value that the caller has taken out of its list. state_loop_end_change drops the value after it has let the
 * loop's lock go, because dropping takes long. */
void state_loop_drop_later(struct state_loop *loop, struct state_value *value);
/* Lets the loop's lock go, and then drops the values of state_loop_drop_later. Returns `result`. */
int64_t state_loop_end_change(struct state_loop *loop, int64_t result);

/* --- the caller of these functions holds the registry's lock (state_registry) --- */

/* The open loop with this number, or NULL. */
struct state_loop *state_loop_known(int64_t number);
/* Whether another loop has the same folder. If two loops with one folder are opened at once, at least the loop that
 * asks later gets true. */
bool state_loop_has_folder(const struct state_loop *self);
/* Whether the loop's present iteration has a newer value with the same id. */
bool state_loop_is_replaced(struct state_loop *loop, const struct state_value *value);
typedef bool state_loop_look(struct state_value *value, void *context);
/* Calls `look` for all values of all loops, until `look` returns false. Returns the value for which it returned false,
 * or NULL. */
struct state_value *state_loop_each(state_loop_look *look, void *context);

#pragma GCC visibility pop

#endif
