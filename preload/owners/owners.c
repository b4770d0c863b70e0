/* owners.c — see owners.h. Owners are found by a hash of kind and keys. owner.c holds their data. */
#include "preload/owners/owners.h"

#include <errno.h>
#include <string.h>

#include "preload/base/arena.h"
#include "preload/blocks/heaps.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"
#include "preload/base/lock.h"
#include "preload/shared/os.h"
#include "preload/shared/utf8.h"
#include "preload/stow/stow.h"
#include "preload/vram/vram_owned.h"
#include "preload/owners/owned.h"
#include "preload/owners/owners_mark.h"
#include "preload/count/tags.h"
#include "preload/base/words.h"
#include "preload/ledger/budget.h"
#include "preload/base/forked.h"

enum { TEXT_MAX = 1024, TEXTS = 4096 };

static uint32_t first_run;
static struct words by_keys; /* finds an owner by kind and keys; it has no retired owners */

/* --- finding owners by their keys --- */

static uint64_t owners_hash_of(uint32_t kind, const uint64_t keys[2]) {
    uint64_t h = (keys[0] ^ kind) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32 ^ keys[1]) * 0xD6E8FEB86659FD93u;
    return (h ^ h >> 32) | 2; /* words.h reserves 0 and 1 */
}

static bool has_keys(const struct owner *owner) { return owner->keys[0] || owner->keys[1]; }

static bool is_same(const struct owner *owner, uint32_t kind, const uint64_t keys[2]) {
    return owner->kind == kind && owner->keys[0] == keys[0] && owner->keys[1] == keys[1];
}

static uint32_t find_owner(uint32_t kind, const uint64_t keys[2]) {
    if (!keys[0] && !keys[1]) return 0;
    uint32_t id = words_find(&by_keys, owners_hash_of(kind, keys));
    if (id == WORDS_NONE) return 0;
    while (id && !is_same(owner_at(id), kind, keys)) id = owner_at(id)->next;
    return id;
}

static bool enter_keys(uint32_t id, struct owner *owner) {
    if (!has_keys(owner)) return true;
    uint64_t hash = owners_hash_of(owner->kind, owner->keys);
    uint32_t first = words_find(&by_keys, hash);
    if (first == WORDS_NONE) return words_put(&by_keys, hash, id);
    owner->next = owner_at(first)->next;
    owner_at(first)->next = id;
    return true;
}

static void leave_keys(uint32_t id, struct owner *owner) {
    if (!has_keys(owner)) return;
    uint64_t hash = owners_hash_of(owner->kind, owner->keys);
    uint32_t first = words_find(&by_keys, hash);
    if (first == WORDS_NONE) {
        return; /* the owner is in no chain: a fork came in the middle of a change, or memory was short */
    } else if (first == id) {
        words_take_out(&by_keys, hash);
        if (owner->next) words_put(&by_keys, hash, owner->next);
    } else {
        for (struct owner *at = owner_at(first); at; at = owner_at(at->next))
            if (at->next == id) {
                at->next = owner->next;
                break;
            }
    }
    owner->next = 0;
}

static struct snap_mark mark_of(enum snap_mark_kind kind, uint32_t owner, uint32_t detail) {
    return (struct snap_mark){.kind = kind, .owner = owner, .detail = detail, .live = SNAP_MARK_UNKNOWN};
}

static void note_mark(enum snap_mark_kind kind, uint32_t owner) {
    struct snap_mark mark = mark_of(kind, owner, 0);
    history_mark(&mark);
}

/* The mark of a run, with what owners have at that time. */
static void note_run(enum snap_mark_kind kind, uint32_t run, uint32_t outcome) {
    struct snap_mark mark = mark_of(kind, run, outcome);
    owners_mark(&mark);
}

/* --- making new owners --- */

/* Returns memory for a text, or NULL if there is no memory. Texts are short and lie next to each other. The caller
 * holds the registry's lock. */
static char *owners_text_memory(size_t length) {
    static char *texts;
    static size_t left;
    if (length > left) {
        texts = arena_take(TEXTS);
        left = texts ? TEXTS : 0;
    }
    if (length > left) return NULL;
    left -= length;
    return texts + left;
}

static const char *copy_of(const char *text) {
    size_t length = utf8_cut(text, strnlen(text, TEXT_MAX - 1));
    if (!length) return "";
    char *copy = owners_text_memory(length + 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

enum { RUNS_TOGETHER = 64 }; /* the number of consecutive runs that form a group (owner_first_of) */

static void number_run(uint32_t id, struct owner *run) {
    if (owner_run_count % RUNS_TOGETHER == 0) first_run = id;
    run->first = first_run;
    run->number = owner_run_count;
    __atomic_store_n(&owner_run_count, owner_run_count + 1, __ATOMIC_RELAXED);
}

static bool has_policy(const struct owner *owner) {
    return owner && (owner->kind == MEMSTOW_MODEL || owner->kind == MEMSTOW_CUSTOM || owner->kind == MEMSTOW_STATE);
}

static bool may_own(const struct owner *owner) {
    return owner && (owner->kind == MEMSTOW_MODEL || owner->kind == MEMSTOW_CUSTOM);
}

/* Makes a new owner, and returns its id or -errno. The caller holds the lock of the registry. */
static int64_t owners_make(uint32_t kind, const char *name, const char *origin, const uint64_t keys[2]) {
    uint32_t id = owner_count();
    struct owner *owner = owner_reserve(id);
    if (!owner) return id < OWNERS_LIMIT ? -ENOMEM : -ENOSPC;
    *owner = (struct owner){.state = SNAP_OWNER_LIVE, .keys = {keys[0], keys[1]}, .begin_ns = os_now()};
    owner->last_use_ns = owner->begin_ns;
    owner->name = copy_of(name);
    owner->origin = copy_of(origin);
    if (!owner->name || !owner->origin) return -ENOMEM;
    owner->kind = kind;
    if (kind == MEMSTOW_RUN) number_run(id, owner);
    if (!enter_keys(id, owner)) {
        owner->kind = 0;
        return -ENOMEM;
    }
    owner_publish(id);
    owner_make_record(id);
    tags_use();
    if (may_own(owner)) {
        heaps_begin();
        note_mark(SNAP_MARK_CAME, id);
    }
    return id;
}

int64_t owners_open(uint32_t kind, const char *name, const char *origin, const uint64_t keys[2]) {
    if (!lock_wait(&owner_registry)) return -EBUSY;
    int64_t id = find_owner(kind, keys);
    if (!id) id = owners_make(kind, name, origin, keys);
    lock_let_go(&owner_registry);
    return id;
}

int64_t owners_begin_run(const char *name) {
    static const uint64_t no_keys[2];
    if (!lock_wait(&owner_registry)) return -EBUSY;
    int64_t id = tags_run() ? -EBUSY : owners_make(MEMSTOW_RUN, name, "", no_keys);
    if (id > 0) tags_set_run((uint32_t)id);
    lock_let_go(&owner_registry);
    if (id > 0) note_run(SNAP_MARK_RUN_BEGAN, (uint32_t)id, 0);
    return id;
}

/* --- changing owners --- */

static void owners_retire_one(uint32_t id, struct owner *owner) {
    leave_keys(id, owner);
    owner->end_ns = os_now();
    __atomic_store_n(&owner->state, SNAP_OWNER_RETIRED, __ATOMIC_RELEASE);
    owner_note_state(owner);
}

int owners_end_run(uint32_t run, uint32_t outcome) {
    if (!lock_wait(&owner_registry)) return -EBUSY;
    struct owner *owner = run && tags_run() == run ? owner_known(run) : NULL;
    if (owner) {
        tags_set_run(0);
        budget_note_run_end();
        owner->outcome = outcome;
        owners_retire_one(run, owner);
    }
    lock_let_go(&owner_registry);
    if (owner) note_run(SNAP_MARK_RUN_ENDED, run, outcome);
    return owner ? 0 : -ENOENT;
}

/* Gives the memory of `from`, which is the owner `provisional`, to the owner `id`. The caller holds the registry's
 * lock. False: `from` has an adopter already, or `provisional` is itself the adopter of `id`. */
static bool owners_adopt_from(uint32_t id, uint32_t provisional, struct owner *from) {
    uint32_t by = owner_final(id);
    if (from->adopted_by || by == provisional) return false;
    owner_make_record(id);
    __atomic_store_n(&from->adopted_by, by, __ATOMIC_RELEASE);
    if (from->state == SNAP_OWNER_LIVE)
        owners_retire_one(provisional, from);
    else
        owner_note_state(from);
    tags_change();
    return true;
}

int owners_adopt(uint32_t id, uint32_t provisional) {
    struct owner *to = owner_known(id), *from = owner_known(provisional);
    if (!to || !from) return -ENOENT;
    if (!may_own(to) || !may_own(from)) return -EINVAL;
    if (!lock_wait(&owner_registry)) return -EBUSY;
    bool adopted = owners_adopt_from(id, provisional, from);
    lock_let_go(&owner_registry);
    if (!adopted) return -EINVAL;
    heaps_retire(provisional);
    stow_change_owner(provisional, owner_final(id));
    vram_owned_change(provisional, owner_final(id));
    return 0;
}

int owners_retire(uint32_t id) {
    struct owner *owner = owner_known(id);
    if (!owner) return -ENOENT;
    if (owner->kind == MEMSTOW_RUN) return -EINVAL;
    if (!lock_wait(&owner_registry)) return -EBUSY;
    bool was_live = owner->state == SNAP_OWNER_LIVE;
    if (was_live) owners_retire_one(id, owner);
    tags_change();
    lock_let_go(&owner_registry);
    if (was_live && may_own(owner)) note_mark(SNAP_MARK_RETIRED, id);
    heaps_retire(id);
    return 0;
}

/* Finds the owner with this id or, if it was adopted, its adopter. Returns 0 if `may` says that this owner can have the
 * setting, otherwise -EINVAL. Returns -ENOENT if there is no such owner. */
static int find_settable(uint32_t id, bool (*may)(const struct owner *owner), struct owner **out) {
    *out = owner_known(owner_final(id));
    if (!*out) return -ENOENT;
    return may(*out) ? 0 : -EINVAL;
}

int owners_policy(uint32_t id, uint32_t policy, int32_t priority) {
    struct owner *owner;
    int error = find_settable(id, has_policy, &owner);
    if (error) return error;
    if (!lock_wait(&owner_registry)) return -EBUSY;
    bool news = owner->policy != policy || owner->priority != priority;
    owner->policy = policy;
    owner->priority = priority;
    owner_note_state(owner);
    lock_let_go(&owner_registry);
    return news;
}

int owners_idle(uint32_t id, bool idle) {
    struct owner *owner;
    int error = find_settable(id, has_policy, &owner);
    if (!error) __atomic_store_n(&owner->idle, idle, __ATOMIC_RELEASE);
    return error;
}

int owners_discard(uint32_t id, bool discard) {
    struct owner *owner;
    int error = find_settable(id, may_own, &owner);
    if (!error) __atomic_store_n(&owner->discards, discard, __ATOMIC_RELEASE);
    return error;
}

int owners_load(uint32_t id) {
    struct owner *owner;
    int error = find_settable(id, may_own, &owner);
    if (!error) __atomic_store_n(&owner->loads, 1, __ATOMIC_RELEASE);
    return error;
}

/* --- the state and the memory of owners --- */

/* The state of an owner for a decision. A use of the owner only sets a flag, and does not note the time. So the present
 * time counts as the time of the latest use if the flag was set since the previous call of this function, or if a scope
 * is open. */
static struct owner_state owners_state_of(uint32_t id, struct owner *owner, const struct owned *has) {
    if (__atomic_exchange_n(&owner->used, 0, __ATOMIC_RELAXED) || os_load32(&owner->scopes))
        owner->last_use_ns = os_now();
    return (struct owner_state){
        .id = id,
        .kind = owner->kind,
        .policy = owner->policy,
        .adopted_by = owner->adopted_by,
        .priority = owner->priority,
        .retired = owner->state != SNAP_OWNER_LIVE,
        .scope_open = os_load32(&owner->scopes) != 0,
        .idle = os_load32(&owner->idle),
        .live_bytes = has->live_bytes,
        .live_blocks = has->live_blocks,
        .device_bytes = has->cuda_bytes,
        .movable_bytes = has->movable_bytes,
        .stowed_bytes = has->stowed_bytes,
        .device_movable_bytes = has->device_movable_bytes,
        .device_stowed_bytes = has->device_stowed_bytes,
        .last_use_ns = owner->last_use_ns,
    };
}

static bool owners_is_listed(const struct owner *owner, const struct owned *has) {
    return has_policy(owner) && !owner->adopted_by &&
           (owner->state == SNAP_OWNER_LIVE || has->live_bytes || has->cuda_bytes);
}

uint32_t owners_list(struct owner_state *out, uint32_t capacity) {
    uint32_t all = owner_count(), listed = 0;
    struct owned *has = owned_of_all(all);
    for (uint32_t id = 1; has && id < all; id++) {
        struct owner *owner = owner_known(id);
        if (!owner || !owners_is_listed(owner, &has[id])) continue;
        if (listed < capacity) out[listed] = owners_state_of(id, owner, &has[id]);
        listed++;
    }
    owned_let_go(has, all);
    return listed;
}

int owners_figures(uint32_t id, struct memstow_figures *out) {
    const struct owner *owner = owner_known(id);
    if (!owner) return -ENOENT;
    uint32_t all = owner_count();
    struct owned *sums = owned_of_all(all);
    if (!sums) return -ENOMEM;
    const struct owned *has = &sums[id];
    *out = (struct memstow_figures){
        .size = out->size,
        .kind = owner->kind,
        .policy = owner->policy,
        .priority = owner->priority,
        .retired = owner->state != SNAP_OWNER_LIVE,
        .adopted_by = owner->adopted_by,
        .live_bytes = has->live_bytes,
        .live_blocks = has->live_blocks,
        .allocated_bytes = has->allocated_bytes,
        .host_bytes = has->live_bytes - has->mapped_bytes,
        .mapped_bytes = has->mapped_bytes,
        .cuda_bytes = has->cuda_bytes,
        .resident_bytes = owner->kind == MEMSTOW_STATE ? has->live_bytes - has->stowed_bytes : owned_resident(id),
        .stowed_bytes = has->stowed_bytes,
        .movable_bytes = has->movable_bytes,
        .device_stowed_bytes = has->device_stowed_bytes,
    };
    memcpy(out->on_device_bytes, has->on_device_bytes, sizeof out->on_device_bytes);
    owned_let_go(sums, all);
    return 0;
}

/* In a forked child: forgets the scopes that other threads had open, because only the thread that forked is left. */
static void forget_scopes_of_others(void) {
    const struct scopes *self = &tags_scopes;
    for (uint32_t id = 1; id < owner_count(); id++)
        if (owner_known(id)) owner_known(id)->scopes = 0;
    for (uint32_t i = 0; i < self->count; i++) owner_scope(self->owners[i], 1);
}

static void owners_abandon(void) { forget_scopes_of_others(); }
FORKED(owners_abandon);
