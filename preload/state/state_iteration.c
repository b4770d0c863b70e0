/* state_iteration.c — an iteration of a loop, from its begin until it is committed or abandoned (state_store.h).
 * In: the values that were put in the iteration. Out: all of them become the loop's committed values at once, or none
 * does. */
#include "preload/state/state_store.h"

#include <errno.h>

#include "preload/owners/owners.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_manifest.h"
#include "preload/state/state_owner.h"

int64_t state_begin(int64_t number) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    if (error) return error;
    if (loop->begun) return state_loop_end_change(loop, -EBUSY);
    loop->begun = true;
    return state_loop_end_change(loop, (int64_t)loop->generation + 1);
}

int64_t state_generation(int64_t number) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    return error ? error : state_loop_end_change(loop, (int64_t)loop->generation);
}

/* Drops the values that were put, and ends the iteration. The caller holds the loop's lock. */
static void abandon_iteration(struct state_loop *loop) {
    lock_hold(&state_registry);
    struct state_value *dropped = loop->put;
    loop->put = NULL;
    loop->begun = false;
    lock_let_go(&state_registry);
    while (dropped) {
        struct state_value *value = dropped;
        bool stays = *state_value_find(&loop->committed, value->id);
        dropped = value->next;
        state_owner_note_stowed(value->owner);
        if (!stays) owners_retire(value->owner);
        state_loop_drop_later(loop, value);
    }
}

int state_abandon_iteration(int64_t number) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    if (error) return error;
    abandon_iteration(loop);
    return (int)state_loop_end_change(loop, 0);
}

/* Commits the values that were put. Returns the values that they replace, which nobody can find any more. */
static struct state_value *replace_committed(struct state_loop *loop) {
    struct state_value *old = NULL;
    lock_hold(&state_registry);
    while (loop->put) {
        struct state_value *value = loop->put, *before = state_value_take(&loop->committed, value->id);
        loop->put = value->next;
        value->next = loop->committed;
        loop->committed = value;
        if (before) before->next = old, old = before;
    }
    loop->generation++;
    loop->begun = false;
    lock_let_go(&state_registry);
    return old;
}

static int64_t commit_iteration(struct state_loop *loop) {
    int error = loop->begun ? state_manifest_commit(loop) : -EPERM;
    if (error) return error;
    struct state_value *old = replace_committed(loop);
    if (loop->files.name[0]) state_manifest_unlink(loop, old);
    while (old) {
        struct state_value *value = old;
        old = value->next;
        state_owner_note_stowed(value->owner);
        state_loop_drop_later(loop, value);
    }
    return (int64_t)loop->generation;
}

int64_t state_commit(int64_t number) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    return error ? error : state_loop_end_change(loop, commit_iteration(loop));
}
