/* register.c — the entry points of memstow.h for owners, scopes, ranges, moves, runs and the peak.
 * In: the program's calls, with any argument. Out: calls of owners.c, assign.c, moving.c and others, with checked
 * arguments. A thread opens a scope for an owner: memory that the thread then allocates belongs to the owner of the
 * innermost scope of each kind. Every call keeps errno, and notes for memstow_error why it failed. */
#include "include/memstow.h"

#include <errno.h>
#include <string.h>

#include "preload/count/account.h"
#include "preload/owners/assign.h"
#include "preload/control/control.h"
#include "preload/abi/entry.h"
#include "preload/ledger/ledger.h"
#include "preload/owners/moving.h"
#include "preload/owners/mover.h"
#include "preload/owners/owned.h"
#include "preload/count/owner.h"
#include "preload/triggers/trigger.h"
#include "preload/owners/owners.h"
#include "preload/life/process.h"
#include "preload/abi/register.h"
#include "preload/count/tags.h"
#include "preload/serve/rescue.h"
#include "preload/count/thread.h"
#include "preload/vram/vram_ahead.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_move.h"
#include "preload/vram/vram_table.h"

/* One byte more than owners.c stores of a text. From this byte owners.c sees whether its cut would fall into a UTF-8
 * character. */
enum { TEXT_SIZE = 1024 + 1 };

EXPORTED uint32_t memstow_abi_version(void) { return MEMSTOW_ABI_VERSION; }

EXPORTED int32_t memstow_is_tracking(void) { return process_tracked(); }

/* --- owners: opened, changed, and asked about --- */

int64_t register_opened(int64_t id) {
    if (id > 0) {
        process_allow_fast_path();
        moving_begin();
        control_begin();
    }
    return entry_result(id);
}

EXPORTED int64_t memstow_owner_open(uint32_t kind, const char *name, const char *origin, uint64_t key1, uint64_t key2) {
    char texts[2][TEXT_SIZE];
    if (!process_tracked()) return entry_not_tracked();
    if (kind != MEMSTOW_MODEL && kind != MEMSTOW_NODE && kind != MEMSTOW_CUSTOM)
        return entry_fails(-EINVAL, "an owner is opened as a model, a node or a custom");
    if (!entry_text(texts[0], TEXT_SIZE, name) || !entry_text(texts[1], TEXT_SIZE, origin))
        return entry_fails(-EFAULT, "name or origin cannot be read");
    return register_opened(owners_open(kind, texts[0], texts[1], (const uint64_t[2]){key1, key2}));
}

EXPORTED int32_t memstow_owner_adopt(uint32_t owner, uint32_t provisional) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    int result = owners_adopt(owner, provisional);
    if (result == -EINVAL)
        return (int32_t)entry_fails(
            result, "the two must be different models or customs, and no owner may have adopted the provisional one");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_owner_retire(uint32_t owner) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    int result = owner_kind(owner) == MEMSTOW_STATE ? -EINVAL : owners_retire(owner);
    if (result == -EINVAL)
        return (int32_t)entry_fails(result, "a run or a state cannot be retired: end the run, or release the state");
    return (int32_t)entry_result(result);
}

static void note_policy(uint32_t owner, uint32_t policy, int32_t priority) {
    uint32_t id = owner_final(owner);
    const struct owner *of = owner_known(id);
    trigger_note_policy(id, of->kind, of->name, of->keys, policy, priority);
}

EXPORTED int32_t memstow_owner_policy(uint32_t owner, uint32_t policy, int32_t priority) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (policy > MEMSTOW_FREE) return (int32_t)entry_fails(-EINVAL, "no such policy");
    int result = owners_policy(owner, policy, priority);
    if (result == -EINVAL) return (int32_t)entry_fails(result, "only models and customs have a policy");
    if (result > 0) note_policy(owner, policy, priority);
    if (result > 0) result = 0;
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_owner_idle(uint32_t owner, uint32_t idle) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (idle > 1) return (int32_t)entry_fails(-EINVAL, "idle is 0 or 1");
    int result = owners_idle(owner, idle);
    if (result == -EINVAL) return (int32_t)entry_fails(result, "only models and customs are idle");
    if (!result && !idle && !rescue_is_over())
        return (int32_t)entry_fails(-EBUSY, "a rescue that moves memory out of a device has not ended");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_owner_discard(uint32_t owner, uint32_t discard) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (discard > 1) return (int32_t)entry_fails(-EINVAL, "discard is 0 or 1");
    int result = owners_discard(owner, discard);
    if (result == -EINVAL) return (int32_t)entry_fails(result, "only models and customs discard content");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_owner_figures(uint32_t owner, struct memstow_figures *out) {
    struct memstow_figures figures;
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    int64_t size = entry_size(out, sizeof figures.size, sizeof figures);
    if (size < 0) return (int32_t)size;
    int result = owners_figures(owner, &figures);
    if (result < 0) return (int32_t)entry_result(result);
    figures.size = (uint32_t)size;
    return entry_out(out, &figures, (size_t)size)
               ? 0
               : (int32_t)entry_fails(-EFAULT, "the figures cannot be written there");
}

/* Fills in `share`, the live memory that has one tag (a model, node and run). False: the tag has no live memory. */
static bool share_of(uint32_t number, const struct owned *has, struct memstow_share *share) {
    struct snap_tag tag = tags_at(number);
    *share = (struct memstow_share){.model = owner_final(tag.model),
                                    .node = tag.node,
                                    .run = tag.run,
                                    .live_bytes = has->live_bytes,
                                    .live_blocks = has->live_blocks,
                                    .cuda_bytes = has->cuda_bytes};
    /* There may be live bytes without a live block: those of a part (a piece of a block that was assigned to another
     * owner). */
    return has->live_bytes || has->live_blocks || has->cuda_bytes;
}

/* Writes the shares of all tags, but no more than `out` can hold. `size` is the size of the caller's structure. Returns
 * the number of all shares, or -EFAULT. */
static int64_t hand_out(struct memstow_share *out, uint32_t capacity, uint32_t size, const struct owned *all,
                        uint32_t tags) {
    struct memstow_share share;
    uint32_t found = 0, part = size < sizeof share ? size : sizeof share;
    for (uint32_t number = 1; number < tags; number++) {
        if (!share_of(number, &all[number], &share)) continue;
        if (found < capacity && !entry_out((char *)out + (uint64_t)found * size, &share, part)) return -EFAULT;
        found++;
    }
    return found;
}

EXPORTED int64_t memstow_shares(struct memstow_share *out, uint32_t capacity, uint32_t size) {
    if (!process_tracked()) return entry_not_tracked();
    if (capacity && !size) return entry_fails(-EINVAL, "the size of a share must not be 0");
    uint32_t tags = tags_count();
    struct owned *all = owned_of_tags(tags);
    if (!all) return entry_result(-ENOMEM);
    int64_t found = hand_out(out, capacity, size, all, tags);
    owned_let_go(all, tags);
    return found < 0 ? entry_fails(found, "the shares cannot be written there") : found;
}

/* --- scopes of the calling thread: entered, left, replaced --- */

static bool is_node(uint32_t owner) { return owner_kind(owner) == MEMSTOW_NODE; }

/* Gives the thread a slot (its entry in the table of threads), if it has none because it never allocated. Without a
 * slot, nobody would close the thread's scopes when the thread ends. */
static void get_slot(void) {
    if (unlikely(thread_self == &thread_nobody) && process_tracked()) thread_slot();
}

/* Marks the thread's tag (the owners of its allocations) as out of date. Call it after each change of the thread's
 * scopes. A signal handler that interrupts the change does no harm if it closes the scopes that it opens, and changes
 * no others. */
static void register_changed(struct scopes *scopes) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    scopes->epoch = 0;
}

static bool has_scopes(uint32_t kind) { return kind && kind != MEMSTOW_RUN && kind != MEMSTOW_STATE; }

static int32_t refuse_scope(uint32_t kind) {
    if (kind == MEMSTOW_STATE)
        return (int32_t)entry_fails(-EINVAL, "a state has no scope: memstow_state_put gives it its memory");
    return (int32_t)(kind ? entry_fails(-EINVAL, "a run has no scope: memstow_run_begin begins it")
                          : entry_result(-ENOENT));
}

EXPORTED int32_t memstow_scope_enter(uint32_t owner) {
    struct scopes *scopes = &tags_scopes;
    if (unlikely(scopes->count == MEMSTOW_SCOPES)) return (int32_t)entry_fails(-ENOSPC, "too many scopes are open");
    uint32_t kind = owner_scope(owner, 1);
    if (unlikely(!has_scopes(kind))) return refuse_scope(kind);
    get_slot();
    /* The count grows before the entry is written, because a signal handler writes to the entries from `count` on. */
    uint32_t at = scopes->count;
    scopes->count = at + 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    scopes->owners[at] = owner;
    register_changed(scopes);
    return 0;
}

/* Finds the innermost scope of the owner's kind, where models and customs are one kind. *at: the position of that
 * scope. True: it is a scope of this very owner. */
static bool find_scope(const struct scopes *scopes, uint32_t owner, uint32_t *at) {
    for (uint32_t i = scopes->count; i-- > 0;) {
        *at = i;
        if (likely(scopes->owners[i] == owner)) return true;
        if (is_node(scopes->owners[i]) == is_node(owner)) return false;
    }
    return false;
}

/* Call it after a thread has left a scope of the owner. If no thread is in a scope of the owner any more, the owner's
 * spares (device memory that was freed in its scopes) are given back, and memory for moves is pinned. */
static __attribute__((cold, noinline)) void device_scopes_over(uint32_t owner) {
    const struct owner *known = owner_known(owner);
    if (!known || os_load32(&known->scopes)) return;
    vram_memory_end_spares(owner);
    vram_ahead_loaded();
}

/* Removes the entry of the owner's scope: the entries behind it move one place forward. All entries behind it must be
 * of the other kind (nodes behind a model or custom, models and customs behind a node). -EPERM: they are not. -ENOENT:
 * there is no such owner. */
static __attribute__((noinline)) int32_t put_scope_last(struct scopes *scopes, uint32_t owner) {
    uint32_t at;
    if (!find_scope(scopes, owner, &at))
        return (int32_t)(owner_kind(owner)
                             ? entry_fails(-EPERM, "it is not the innermost scope of its kind on this thread")
                             : entry_result(-ENOENT));
    for (; at + 1 < scopes->count; at++) scopes->owners[at] = scopes->owners[at + 1];
    return 0;
}

EXPORTED int32_t memstow_scope_leave(uint32_t owner) {
    struct scopes *scopes = &tags_scopes;
    uint32_t count = scopes->count;
    int32_t error = likely(count && scopes->owners[count - 1] == owner) ? 0 : put_scope_last(scopes, owner);
    if (unlikely(error)) return error;
    /* `count` shrinks after the entries have moved, because a signal handler writes to the entries from `count` on. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    scopes->count = count - 1;
    owner_scope(owner, -1);
    register_changed(scopes);
    /* This comes after the scope is closed, because device_scopes_over does nothing while a scope of the owner is open.
     * So the thread that closes the owner's last scope gives back all spares of the owner, including those that other
     * threads have made. */
    if (unlikely(vram_table_spares() || vram_ahead_has_news())) device_scopes_over(owner);
    return 0;
}

/* --- load phases of the calling thread --- */

EXPORTED int32_t memstow_load_begin(uint32_t owner) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    int result = owners_load(owner_final(owner));
    if (result == -EINVAL) return (int32_t)entry_fails(result, "only models and customs are loaded");
    if (!result) tags_loads++;
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_load_end(void) {
    if (!tags_loads) return (int32_t)entry_fails(-EPERM, "no load phase of this thread is open");
    tags_loads--;
    return 0;
}

static void copy_scopes(struct memstow_scopes *to, uint32_t size) {
    const struct scopes *from = &tags_scopes;
    *to = (struct memstow_scopes){.size = size, .count = from->count};
    memcpy(to->owners, from->owners, from->count * sizeof *from->owners);
}

static bool may_enter_all(const struct memstow_scopes *scopes) {
    for (uint32_t i = 0; i < scopes->count; i++)
        if (!has_scopes(owner_kind(scopes->owners[i]))) return false;
    return true;
}

static void replace_scopes(const struct memstow_scopes *now) {
    struct scopes *scopes = &tags_scopes;
    get_slot();
    for (uint32_t i = 0; i < now->count; i++) owner_scope(now->owners[i], 1);
    for (uint32_t i = scopes->count; i-- > 0;) owner_scope(scopes->owners[i], -1);
    memcpy(scopes->owners, now->owners, now->count * sizeof *now->owners);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    scopes->count = now->count;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Writes the entries once more, because a signal handler that ran in between may have written to them. */
    memcpy(scopes->owners, now->owners, now->count * sizeof *now->owners);
    register_changed(scopes);
}

EXPORTED int32_t memstow_scope_swap(const struct memstow_scopes *now, struct memstow_scopes *before) {
    struct memstow_scopes wanted = {0}, had;
    int64_t size = now ? entry_size(now, sizeof wanted, sizeof wanted) : 0;
    if (size >= 0 && before) size = entry_size(before, sizeof had, sizeof had);
    if (size < 0) return (int32_t)size;
    if (now && !entry_in(&wanted, now, sizeof wanted))
        return (int32_t)entry_fails(-EFAULT, "the scopes cannot be read");
    if (wanted.count > MEMSTOW_SCOPES)
        return (int32_t)entry_fails(-EINVAL, "there are more than 62 scopes in the list");
    if (!may_enter_all(&wanted))
        return (int32_t)entry_fails(-ENOENT, "one of the scopes does not belong to a model, node or custom");
    copy_scopes(&had, sizeof had);
    if (before && !entry_out(before, &had, sizeof had))
        return (int32_t)entry_fails(-EFAULT, "the former scopes cannot be written there");
    replace_scopes(&wanted);
    bool looks = vram_table_spares() || vram_ahead_has_news();
    for (uint32_t i = 0; looks && i < had.count; i++) device_scopes_over(had.owners[i]);
    return 0;
}

EXPORTED int32_t memstow_scope_save(struct memstow_scopes *out) {
    struct memstow_scopes have;
    int64_t size = entry_size(out, sizeof have, sizeof have);
    if (size < 0) return (int32_t)size;
    copy_scopes(&have, sizeof have);
    return entry_out(out, &have, sizeof have) ? 0 : (int32_t)entry_fails(-EFAULT, "the scopes cannot be written there");
}

/* --- ranges: memory that is assigned to an owner --- */

static int32_t register_assign(uint32_t owner, const void *start, uint64_t length) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (!length || (uintptr_t)start + length < (uintptr_t)start)
        return (int32_t)entry_fails(-EINVAL, "the range is empty, or goes beyond the last address");
    int result = assign_range((uintptr_t)start, length, owner);
    if (result == -ENXIO)
        return (int32_t)entry_fails(result,
                                    "the range is not a block, and not in a large block or a mapping of the program");
    return (int32_t)entry_result(result);
}

EXPORTED int32_t memstow_assign(uint32_t owner, const void *start, uint64_t length) {
    uint32_t model = owner_final(owner), kind = owner_kind(model);
    if (!kind) return (int32_t)entry_result(-ENOENT);
    if (kind != MEMSTOW_MODEL && kind != MEMSTOW_CUSTOM)
        return (int32_t)entry_fails(-EINVAL, "memory is assigned to models and customs");
    return register_assign(model, start, length);
}

EXPORTED int32_t memstow_release_range(const void *start, uint64_t length) { return register_assign(0, start, length); }

/* --- moves of an owner's memory --- */

static int64_t register_moved(int64_t result) {
    const char *why = moving_why_not(result);
    if (why) return entry_fails(result, why);
    if (result == -EBUSY) return entry_fails(result, "memory is being moved already");
    if (result == -ENOTSUP) return entry_fails(result, "the memory cannot be moved: the trace has the reasons");
    if (result == -ENOSPC) return entry_fails(result, "the disk is full");
    if (result == -ECANCELED) return entry_fails(result, "the move was cancelled");
    if (result == -EIO) return entry_fails(result, "the disk answered with an error");
    if (result == -EINVAL) return entry_fails(result, "only memory of models, customs and states is moved");
    return entry_result(result);
}

/* Calls `one`, which moves the memory of an owner, and returns its result. `frame`: the stack frame of the entry point,
 * for vram_move_asked_at. */
static int64_t register_move(int64_t (*one)(uint32_t owner), uint32_t owner, const void *frame) {
    if (!process_tracked()) return entry_not_tracked();
    vram_move_asked_at(frame);
    mover_begin_call();
    return register_moved(one(owner));
}

EXPORTED int64_t memstow_stow(uint32_t owner) { return register_move(moving_stow, owner, __builtin_frame_address(0)); }

EXPORTED int64_t memstow_restore(uint32_t owner) {
    return register_move(moving_restore, owner, __builtin_frame_address(0));
}

EXPORTED int64_t memstow_release(uint32_t owner) {
    return register_move(moving_release, owner, __builtin_frame_address(0));
}

/* --- the peak of live memory in an interval --- */

EXPORTED int64_t memstow_peak(uint32_t anew) {
    return process_tracked() ? (int64_t)account_peak(anew != 0) : entry_not_tracked();
}

/* --- runs: begun and ended --- */

EXPORTED int64_t memstow_run_begin(const char *name) {
    char text[TEXT_SIZE];
    if (!process_tracked()) return entry_not_tracked();
    if (!entry_text(text, TEXT_SIZE, name)) return entry_fails(-EFAULT, "the name cannot be read");
    int64_t run = owners_begin_run(text);
    return run == -EBUSY ? entry_fails(run, "another run has not ended") : register_opened(run);
}

EXPORTED int32_t memstow_run_end(uint32_t run, uint32_t outcome) {
    if (!process_tracked()) return (int32_t)entry_not_tracked();
    if (outcome > MEMSTOW_OUT_OF_MEMORY) return (int32_t)entry_fails(-EINVAL, "no such outcome");
    int result = owners_end_run(run, outcome);
    return result == -ENOENT ? (int32_t)entry_fails(result, "that run is not the present one")
                             : (int32_t)entry_result(result);
}
