/* state_value.c — see state_value.h. Unused values are kept in a list, because private memory is never given back. */
#include "preload/state/state_value.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/base/forked.h"
#include "preload/blocks/mappings.h"
#include "preload/count/site.h"

struct lock state_registry;
static struct state_value *unused;

struct state_value *state_value_new(void) {
    enum { SLAB = 16 };
    struct state_value *value = NULL;
    lock_hold(&state_registry);
    struct state_value *slab = unused ? NULL : arena_take(SLAB * sizeof *slab);
    for (int i = 0; slab && i < SLAB; i++) slab[i].next = unused, unused = &slab[i];
    if (unused) {
        value = unused;
        unused = value->next;
        *value = (struct state_value){.holders = 1};
    }
    lock_let_go(&state_registry);
    return value;
}

void state_value_count(const struct state_value *value, struct caller caller) {
    uint32_t site = site_of_call(caller), tagged = site;
    site_of_model(site, value->owner, &tagged);
    mappings_add((uintptr_t)value->data.base, value->data.length, SNAP_MAP_ANONYMOUS, false, tagged);
}

uint64_t state_value_stowed(const struct state_value *value) {
    return value->data.place == MEMSTOW_STATE_MEMORY ? 0 : value->data.length;
}

static void uncount_value(struct state_value *value) {
    if (!value->data.base) return;
    uint32_t ticket = mappings_take((uintptr_t)value->data.base, value->data.length);
    state_bytes_drop(&value->data);
    mappings_drop(ticket);
}

/* Freeing memory takes long, so it is done without a lock. */
void state_value_drop(struct state_value *value) {
    lock_hold(&state_registry);
    bool last = !--value->holders;
    lock_let_go(&state_registry);
    if (!last) return;
    uncount_value(value);
    lock_hold(&state_registry);
    value->next = unused;
    unused = value;
    lock_let_go(&state_registry);
}

void state_value_describe(const struct state_value *value, struct memstow_state_value *out) {
    *out = (struct memstow_state_value){.owner = value->owner,
                                        .place = value->data.place,
                                        .parts = value->parts,
                                        .generation = value->generation,
                                        .bytes = value->bytes,
                                        .held_bytes = value->data.length};
    strcpy(out->id, value->id);
    strcpy(out->type, value->type);
}

struct state_value **state_value_find(struct state_value **list, const char *id) {
    while (*list && strcmp((*list)->id, id) != 0) list = &(*list)->next;
    return list;
}

struct state_value *state_value_take(struct state_value **list, const char *id) {
    struct state_value **at = state_value_find(list, id), *value = *at;
    if (value) *at = value->next;
    return value;
}

static void state_value_abandon(void) { state_registry = (struct lock){0}; }
FORKED(state_value_abandon);
