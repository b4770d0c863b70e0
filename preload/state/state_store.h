/* state_store.h — loops and their values, generation by generation. A loop is work that the program does again and
 * again, each time with values of the last time.
 * In: the calls of register_state.c, on any thread, with checked arguments; moves of owners (state_owner.h). Out:
 * values that are committed together. The ledger counts their bytes for their owners. Readers continue while bytes are
 * copied and written. No hook may call these functions. Results are numbers or -errno, as in memstow.h. */
#ifndef MEMSTOW_STATE_STORE_H
#define MEMSTOW_STATE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stacks/stack.h"
#include "preload/state/state_bytes.h"

#pragma GCC visibility push(hidden)

enum { STATE_LOOP_SIZE = 128, STATE_PATH_SIZE = 2048 };

/* state_open opens a loop, and returns its `number`. state_begin begins an iteration, and returns its generation.
 * state_put returns the owner of the new value. state_commit returns the generation that is now committed. `caller`:
 * the call stack at which values are counted. */
int64_t state_open(const char *name, const struct memstow_state_options *options, struct caller caller);
int64_t state_begin(int64_t number);
int64_t state_put(int64_t number, const char *id, const struct state_source *source, struct caller caller);
int64_t state_commit(int64_t number);
int state_abandon_iteration(int64_t number);
/* state_get finds the visible value with this id: the one that the present iteration has put, or else the latest
 * committed one. state_get_committed finds the latest committed one. */
int state_get(int64_t number, const char *id, struct memstow_state_value *out);
int state_get_committed(int64_t number, const char *id, struct memstow_state_value *out);
/* Calls visit for each visible value, until visit returns false. Returns how many values were visited. */
int64_t state_list(int64_t number, bool (*visit)(const struct memstow_state_value *value, void *context),
                   void *context);
int64_t state_generation(int64_t number);
int state_release(int64_t number, const char *id);
int state_close(int64_t number, bool keep);

#pragma GCC visibility pop

#endif
