/* state_owner.c — see state_owner.h. While a value is moved, the moving thread counts as a holder of it, so that the
 * value's loop may drop the value meanwhile. */
#include "preload/state/state_owner.h"

#include <errno.h>
#include <string.h>

#include "preload/base/lock.h"
#include "preload/owners/owners.h"
#include "preload/state/state_bytes.h"

static uint64_t state_owner_hash_of(const char *text) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001B3u;
    return hash;
}

int64_t state_owner_open(const struct state_loop *loop, const char *id) {
    char name[sizeof "state:/" + STATE_LOOP_SIZE + MEMSTOW_STATE_ID];
    strcpy(name, "state:");
    strcat(name, loop->name);
    strcat(name, "/");
    strcat(name, id);
    int64_t owner =
        owners_open(MEMSTOW_STATE, name, "store", (const uint64_t[2]){(uint64_t)loop->number, state_owner_hash_of(id)});
    if (owner > 0) owners_idle((uint32_t)owner, true); /* nobody writes to a value: values never change */
    return owner;
}

struct visitor {
    void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context);
    void *context;
};

static bool state_owner_tell(struct state_value *value, void *context) {
    const struct visitor *self = context;
    self->visit(value->owner, value->data.length, state_value_stowed(value) != 0, self->context);
    return true;
}

static void visit_all(void (*visit)(uint32_t owner, uint64_t bytes, bool in_file, void *context), void *context) {
    struct visitor visitor = {visit, context};
    lock_hold(&state_registry);
    state_loop_each(state_owner_tell, &visitor);
    lock_let_go(&state_registry);
}

struct stowed {
    uint32_t owner;
    uint64_t bytes;
};

static void add_stowed(uint32_t owner, uint64_t bytes, bool in_file, void *context) {
    struct stowed *self = context;
    if (owner == self->owner && in_file) self->bytes += bytes;
}

static uint64_t stowed_of(uint32_t owner) {
    struct stowed stowed = {.owner = owner};
    visit_all(add_stowed, &stowed);
    return stowed.bytes;
}

void state_owner_note_stowed(uint32_t owner) { owner_note_stowed(owner, stowed_of(owner), 0); }

struct move {
    uint32_t owner, from, to;
    int64_t moved, error;
};

static bool is_not_to_move(struct state_value *value, void *context) {
    const struct move *self = context;
    return value->owner != self->owner || value->data.place != self->from || value->moving;
}

static struct state_value *next_to_move(const struct move *self) {
    lock_hold(&state_registry);
    struct state_value *value = state_loop_each(is_not_to_move, (void *)self);
    if (value) value->holders++, value->moving = true;
    lock_let_go(&state_registry);
    return value;
}

/* Moves a value to memory or to a file (self->to). Returns false if that fails. Readers get the old bytes or the new
 * ones, which are equal. Freeing memory takes long, so the old bytes are dropped without a lock. */
static bool move_value(struct move *self, struct state_value *value) {
    struct state_bytes copy;
    int error = state_bytes_copy(&copy, &value->data, self->to);
    lock_hold(&state_registry);
    if (!error) error = state_bytes_exchange(&value->data, &copy) ? 0 : -ENOMEM;
    if (!error) self->moved += (int64_t)value->data.length;
    value->moving = false;
    lock_let_go(&state_registry);
    state_bytes_drop(&copy);
    state_value_drop(value);
    self->error = error;
    return !error;
}

static int64_t move_owner(uint32_t owner, bool out, struct move_end end) {
    struct move move = {.owner = owner};
    uint64_t signals;
    struct state_value *value;
    move.from = out ? MEMSTOW_STATE_MEMORY : MEMSTOW_STATE_STOWED;
    move.to = out ? MEMSTOW_STATE_STOWED : MEMSTOW_STATE_MEMORY;
    if (!lock_out_signals(&signals)) return -EPERM;
    while (!move_is_ended(end) && (value = next_to_move(&move)) && move_value(&move, value))
        ;
    lock_let_signals(signals);
    return move.moved ? move.moved : move.error;
}

const struct owned_store state_owner_store = {visit_all, stowed_of, move_owner};
