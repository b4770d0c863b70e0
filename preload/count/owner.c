/* owner.c — see owner.h. Owners lie in slabs that never move. Fields that are read without a lock are written once, or
 * are one word. */
#include "preload/count/owner.h"

#include <string.h>

#include "include/memstow.h"
#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/ledger_strings.h"
#include "preload/ledger/series.h"
#include "preload/shared/os.h"
#include "preload/base/forked.h"

enum { SLAB = 1024, SLABS = OWNERS_LIMIT / SLAB };
/* The newest 1024 runs have sites of their own. Older runs form groups; the runs of a group share sites. */
enum { RUNS_APART = 1024 };

static struct owner *slabs[SLABS]; /* SLAB owners each */
static uint32_t count = 1;         /* id 0 is no owner */
uint32_t owner_run_count;
struct lock owner_registry;
static struct series records = {
    .type = SNAP_OWNER, .record_size = sizeof(struct snap_owner), .first_bits = 6, .limit = OWNERS_LIMIT};

/* --- what is known of an owner, by its id --- */

struct owner *owner_at(uint32_t id) {
    struct owner *slab = __atomic_load_n(&slabs[id / SLAB], __ATOMIC_ACQUIRE);
    return slab ? slab + id % SLAB : NULL;
}

uint32_t owner_count(void) { return __atomic_load_n(&count, __ATOMIC_ACQUIRE); }

struct owner *owner_known(uint32_t id) {
    struct owner *owner = id && id < owner_count() ? owner_at(id) : NULL;
    return owner && __atomic_load_n(&owner->kind, __ATOMIC_ACQUIRE) ? owner : NULL;
}

uint32_t owner_kind(uint32_t id) {
    const struct owner *owner = owner_known(id);
    return owner ? owner->kind : 0;
}

/* The loop ends, because an owner cannot be adopted by an owner that it adopted. */
uint32_t owner_final(uint32_t id) {
    for (const struct owner *owner = owner_known(id); owner; owner = owner_known(id)) {
        uint32_t by = __atomic_load_n(&owner->adopted_by, __ATOMIC_ACQUIRE);
        if (!by) break;
        id = by;
    }
    return id;
}

uint32_t owner_first_of(uint32_t run) {
    const struct owner *owner = owner_known(run);
    if (!owner || owner->kind != MEMSTOW_RUN || owner->first == run) return 0;
    bool old = __atomic_load_n(&owner_run_count, __ATOMIC_RELAXED) - owner->number > RUNS_APART;
    return old && __atomic_load_n(&owner->state, __ATOMIC_ACQUIRE) == SNAP_OWNER_RETIRED ? owner->first : 0;
}

bool owner_is_retired(uint32_t id) {
    const struct owner *owner = owner_known(id);
    return !owner || __atomic_load_n(&owner->state, __ATOMIC_ACQUIRE) != SNAP_OWNER_LIVE;
}

bool owner_is_idle(uint32_t id) {
    const struct owner *owner = owner_known(id);
    return owner && __atomic_load_n(&owner->idle, __ATOMIC_ACQUIRE);
}

bool owner_discards(uint32_t id) {
    const struct owner *owner = owner_known(id);
    return owner && __atomic_load_n(&owner->discards, __ATOMIC_ACQUIRE);
}

bool owner_loads(uint32_t id) {
    const struct owner *owner = owner_known(id);
    return owner && __atomic_load_n(&owner->loads, __ATOMIC_ACQUIRE);
}

/* --- records of owners in the ledger --- */

static struct snap_owner *record_of(const struct owner *owner) {
    return owner->record ? series_at(&records, owner->record - 1) : NULL;
}

void owner_note_state(const struct owner *owner) {
    struct snap_owner *record = record_of(owner);
    if (!record) return;
    record->policy = owner->policy;
    record->priority = owner->priority;
    record->outcome = owner->outcome;
    record->end_ns = owner->end_ns;
    record->adopted_by = owner->adopted_by;
    __atomic_store_n(&record->state, owner->state, __ATOMIC_RELEASE);
}

void owner_make_record(uint32_t id) {
    struct owner *owner = owner_known(id);
    if (!owner || owner->record) return;
    uint32_t at = series_take(&records);
    struct snap_owner *record = series_at(&records, at);
    if (!record) {
        ledger_lost(SNAP_LOST_TAGS);
        return;
    }
    record->kind = owner->kind;
    record->name = ledger_string(owner->name);
    record->origin = ledger_string(owner->origin);
    memcpy(record->keys, owner->keys, sizeof record->keys);
    record->begin_ns = owner->begin_ns;
    owner->record = at + 1;
    owner_note_state(owner);
    __atomic_store_n(&record->id, id, __ATOMIC_RELEASE);
}

void owner_note(struct snap_tag tag) {
    const uint32_t ids[] = {tag.model, tag.node, tag.run};
    for (int i = 0; i < 3; i++) {
        const struct owner *owner = owner_known(ids[i]);
        if (!owner || __atomic_load_n(&owner->record, __ATOMIC_ACQUIRE) || !lock_wait(&owner_registry)) continue;
        owner_make_record(ids[i]);
        lock_let_go(&owner_registry);
    }
}

/* --- new owners, their scopes, and stowed bytes --- */

struct owner *owner_reserve(uint32_t id) {
    if (id >= OWNERS_LIMIT) return NULL;
    if (!slabs[id / SLAB])
        __atomic_store_n(&slabs[id / SLAB], arena_take(SLAB * sizeof(struct owner)), __ATOMIC_RELEASE);
    return owner_at(id);
}

void owner_publish(uint32_t id) { __atomic_store_n(&count, id + 1, __ATOMIC_RELEASE); }

uint32_t owner_scope(uint32_t id, int change) {
    struct owner *owner = owner_known(id);
    if (unlikely(!owner || owner->kind == MEMSTOW_RUN || owner->kind == MEMSTOW_STATE)) return owner ? owner->kind : 0;
    __atomic_fetch_add(&owner->scopes, (uint32_t)change, __ATOMIC_RELAXED);
    if (!os_load32(&owner->used)) __atomic_store_n(&owner->used, 1, __ATOMIC_RELAXED);
    return owner->kind;
}

void owner_note_stowed(uint32_t id, uint64_t in_files, uint64_t of_devices) {
    const struct owner *owner = owner_known(id);
    struct snap_owner *record = owner ? record_of(owner) : NULL;
    if (!record) return;
    os_store(&record->stowed_bytes, in_files + of_devices);
    os_store(&record->device_stowed_bytes, of_devices);
}

static void owner_abandon(void) {
    series_reset(&records);
    owner_registry = (struct lock){0};
    for (uint32_t id = 1; id < count; id++)
        if (owner_at(id)) owner_at(id)->record = 0;
}
FORKED(owner_abandon);
