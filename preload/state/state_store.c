/* state_store.c — see state_store.h: loops are opened and closed, and their values are read and released. Iterations
 * are in state_iteration.c and state_put.c. */
#include "preload/state/state_store.h"

#include <errno.h>

#include "preload/base/lock.h"
#include "preload/owners/owned.h"
#include "preload/owners/owners.h"
#include "preload/state/state_loop.h"
#include "preload/state/state_manifest.h"
#include "preload/state/state_owner.h"
#include "preload/state/state_saved.h"

int64_t state_open(const char *name, const struct memstow_state_options *options, struct caller caller) {
    struct state_loop *loop;
    int error = state_loop_reserve(name, options, &loop);
    if (error) return error;
    owned_store = &state_owner_store;
    if (options->prefix) error = state_saved_open(loop, options->prefix, caller);
    int64_t number = loop->number;
    if (error)
        state_loop_free(loop, true);
    else
        lock_let_go(&loop->changes);
    return error ? error : number;
}

int state_close(int64_t number, bool keep) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    if (!error) state_loop_free(loop, keep);
    return error;
}

static int view_value(struct state_value *value, struct memstow_state_value *out) {
    state_value_describe(value, out);
    if (stow_file_is_still(&value->data.file) && !state_bytes_are_whole(&value->data)) return -EIO;
    const struct state_header *header = state_bytes_view(&value->data);
    if (!header) return stow_file_is_still(&value->data.file) ? -ENOMEM : -EIO;
    out->view = (void *)header;
    out->view_length = value->data.length;
    out->part = header->part;
    return 0;
}

static struct state_value *visible_value(struct state_loop *loop, const char *id) {
    struct state_value *value = *state_value_find(&loop->put, id);
    return value ? value : *state_value_find(&loop->committed, id);
}

static struct state_value *committed_value(struct state_loop *loop, const char *id) {
    return *state_value_find(&loop->committed, id);
}

static int get_value(int64_t number, const char *id, struct memstow_state_value *out,
                     struct state_value *find(struct state_loop *loop, const char *id)) {
    if (!lock_wait(&state_registry)) return -EBUSY;
    struct state_loop *loop = state_loop_known(number);
    struct state_value *value = loop ? find(loop, id) : NULL;
    int error = value ? view_value(value, out) : -ENOENT;
    lock_let_go(&state_registry);
    return error;
}

int state_get(int64_t number, const char *id, struct memstow_state_value *out) {
    return get_value(number, id, out, visible_value);
}

int state_get_committed(int64_t number, const char *id, struct memstow_state_value *out) {
    return get_value(number, id, out, committed_value);
}

int64_t state_list(int64_t number, bool (*visit)(const struct memstow_state_value *value, void *context),
                   void *context) {
    struct memstow_state_value out;
    int64_t count = 0;
    bool on = true;
    if (!lock_wait(&state_registry)) return -EBUSY;
    struct state_loop *loop = state_loop_known(number);
    for (const struct state_value *value = loop ? loop->put : NULL; value && on; value = value->next, count++) {
        state_value_describe(value, &out);
        on = visit(&out, context);
    }
    for (const struct state_value *value = loop ? loop->committed : NULL; value && on; value = value->next) {
        if (state_loop_is_replaced(loop, value)) continue;
        state_value_describe(value, &out);
        on = visit(&out, context);
        count++;
    }
    lock_let_go(&state_registry);
    return loop ? count : -ENOENT;
}

static int release_value(struct state_loop *loop, const char *id) {
    lock_hold(&state_registry);
    bool committed = *state_value_find(&loop->committed, id) != NULL;
    bool any = committed || *state_value_find(&loop->put, id);
    lock_let_go(&state_registry);
    if (!any) return -ENOENT;
    int error = committed && loop->files.name[0] ? state_manifest_write(loop, loop->generation, id) : 0;
    if (error) return error;
    lock_hold(&state_registry);
    struct state_value *values[] = {state_value_take(&loop->put, id), state_value_take(&loop->committed, id)};
    lock_let_go(&state_registry);
    uint32_t owner = (values[0] ? values[0] : values[1])->owner;
    for (int i = 0; i < 2; i++) {
        if (!values[i]) continue;
        values[i]->next = NULL;
        state_manifest_unlink(loop, values[i]);
        state_loop_drop_later(loop, values[i]);
    }
    state_owner_note_stowed(owner);
    owners_retire(owner);
    return 0;
}

int state_release(int64_t number, const char *id) {
    struct state_loop *loop;
    int error = state_loop_begin_change(number, &loop);
    return error ? error : (int)state_loop_end_change(loop, release_value(loop, id));
}
