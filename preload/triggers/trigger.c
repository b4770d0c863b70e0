/* trigger.c — see trigger.h. */
#include "preload/triggers/trigger.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "preload/blocks/heaps.h"
#include "preload/ledger/history.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/trace.h"
#include "preload/owners/moving.h"
#include "preload/owners/moving_device.h"
#include "preload/owners/mover.h"
#include "preload/shared/os.h"
#include "preload/shared/policy.h"
#include "preload/shared/pressure.h"
#include "preload/vram/vram_memory.h"
#include "preload/vram/vram_move.h"
#include "preload/copies/vram_thread.h"
#include "preload/base/capacity.h"
#include "preload/base/seal.h"
#include "preload/base/forked.h"

/* The outcome of one decision. */
struct result {
    int64_t moved, released; /* bytes, or -errno */
    /* bytes of the owner after the decision. after: live on the host. stowed: moved out of host or device memory */
    uint64_t after, stowed;
    uint64_t device_after, device_stowed; /* device_stowed is part of stowed */
    enum policy_category category;
};

static struct {
    uint32_t stage;  /* enum stage; the thread that changed `stage` most recently owns the other members */
    uint32_t thread; /* the thread that began the trigger. If it is gone, another thread may take over. 0: not known */
    uint64_t number, began_ns;
    uint32_t reason;
    struct memstow_decision *decisions;
    struct result *results;
    struct owner_state *owners;
    uint32_t decision_capacity, result_capacity, owner_capacity, count;
    uint64_t last[POLICY_CATEGORIES]; /* the number of owners in each category, when the latest trigger ended */
} trigger;
/* NONE: there is no trigger. DECIDING: a thread makes or carries out decisions. DECIDED: the decisions wait for
 * trigger_end. */
enum stage { STAGE_NONE, STAGE_DECIDING, STAGE_DECIDED };

/* The arguments of the present rescue. The callers of trigger_rescue make sure that there is only one at a time. */
static bool rescue_takes_kept;
static bool (*rescue_helps)(uint32_t owner);

static bool move_on(enum stage from, enum stage to) {
    uint32_t expected = from;
    return __atomic_compare_exchange_n(&trigger.stage, &expected, to, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static void trigger_finish(enum stage stage) { __atomic_store_n(&trigger.stage, stage, __ATOMIC_RELEASE); }

/* --- words of the trace --- */

static const char *policy_word(uint32_t policy) {
    static const char *const words[] = {"none", "keep", "stow", "free"};
    return policy < sizeof words / sizeof *words ? words[policy] : "none";
}

static const char *kind_word(uint32_t kind) {
    static const char *const words[] = {"", "model", "node", "run", "custom", "state"};
    return kind < sizeof words / sizeof *words ? words[kind] : "";
}

static const char *reason_word(uint32_t reason) {
    static const char *const words[] = {"", "run_ended", "request", "pressure", "idle", "rescue"};
    return words[reason];
}

static const char *why_word(uint32_t why) {
    static const char *const words[] = {"",        "nothing_said", "policy", "in_use", "pressure", "empty",
                                        "retired", "not_needed",   "cannot", "recent", "rescue"};
    return words[why];
}

static const char *category_word(enum policy_category category) {
    static const char *const words[] = {"kept", "stowed", "freed", "blocked"};
    return words[category];
}

/* A word for an error of moving or giving back; NULL: there is none. */
static const char *error_word(int64_t error) {
    static const struct {
        int number;
        const char *word;
    } words[] = {{EBUSY, "EBUSY"},   {ENOTSUP, "ENOTSUP"}, {ENOSPC, "ENOSPC"},      {EIO, "EIO"},
                 {ENOENT, "ENOENT"}, {ENOMEM, "ENOMEM"},   {EINVAL, "EINVAL"},      {EPERM, "EPERM"},
                 {EFBIG, "EFBIG"},   {EROFS, "EROFS"},     {EDQUOT, "EDQUOT"},      {EACCES, "EACCES"},
                 {ENODEV, "ENODEV"}, {EINTR, "EINTR"},     {ECANCELED, "ECANCELED"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (error == -words[i].number) return words[i].word;
    return NULL;
}

void trigger_note_policy(uint32_t owner, uint32_t kind, const char *name, const uint64_t keys[2], uint32_t policy,
                         int32_t priority) {
    struct line line;
    line_begin(&line, "SET");
    line_number(&line, "owner", owner);
    line_string(&line, "owner_kind", kind_word(kind));
    line_string(&line, "name", name);
    line_pair(&line, "keys", keys[0], keys[1]);
    line_string(&line, "policy", policy_word(policy));
    line_signed(&line, "priority", priority);
    trace_add_line(&line);
}

static void begin_line(struct line *line, const char *kind) {
    line_begin(line, kind);
    line_number(line, "trigger", trigger.number);
}

/* Writes a number of bytes on devices, if it is not 0: most programs have no device. */
static void device_number(struct line *line, const char *key, uint64_t bytes) {
    if (bytes) line_number(line, key, bytes);
}

static void trace_begin(uint32_t reason, const char *text, uint64_t needed) {
    struct line line;
    uint64_t before = 0, device_before = 0;
    for (uint32_t i = 0; i < trigger.count; i++) {
        before = policy_sum(before, trigger.decisions[i].live_bytes);
        device_before = policy_sum(device_before, trigger.decisions[i].device_bytes);
    }
    begin_line(&line, "TRIGGER");
    line_string(&line, "reason", reason_word(reason));
    line_string(&line, "text", text);
    line_number(&line, "needed", needed);
    line_number(&line, "owners", trigger.count);
    line_number(&line, "before_bytes", before);
    device_number(&line, "device_before_bytes", device_before);
    line_number(&line, "began_ns", trigger.began_ns);
    trace_add_line(&line);
    history_mark(&(struct snap_mark){.kind = SNAP_MARK_TRIGGER, .detail = reason, .live = SNAP_MARK_UNKNOWN});
}

static void trace_decision(const struct memstow_decision *decision) {
    struct line line;
    begin_line(&line, "DECISION");
    line_number(&line, "owner", decision->owner);
    line_string(&line, "policy", policy_word(decision->policy));
    line_string(&line, "action", policy_word(decision->action));
    line_string(&line, "why", why_word(decision->why));
    line_number(&line, "bytes", decision->live_bytes);
    device_number(&line, "device_bytes", decision->device_bytes);
    trace_add_line(&line);
}

static void trace_category(const struct memstow_decision *decision, const struct result *result) {
    struct line line;
    int64_t error = result->moved < 0 ? result->moved : result->released;
    begin_line(&line, "CATEGORY");
    line_number(&line, "owner", decision->owner);
    line_string(&line, "category", category_word(result->category));
    line_number(&line, "before_bytes", decision->live_bytes);
    line_number(&line, "after_bytes", result->after);
    line_number(&line, "stowed_bytes", result->stowed);
    device_number(&line, "device_before_bytes", decision->device_bytes);
    device_number(&line, "device_after_bytes", result->device_after);
    device_number(&line, "device_stowed_bytes", result->device_stowed);
    if (error < 0) line_string(&line, "error", error_word(error) ? error_word(error) : "other");
    trace_add_line(&line);
}

/* A word for the reason why an owner still has memory. */
static const char *remains_why(const struct memstow_decision *decision, const struct result *result) {
    if (result->category == POLICY_STOWED) return "stowed";
    if (decision->action == MEMSTOW_FREE) return "alive";
    if (decision->action == MEMSTOW_STOW) return "refused";
    return why_word(decision->why);
}

static void trace_remaining(const struct memstow_decision *decision, const struct result *result) {
    struct line line;
    begin_line(&line, "REMAINING");
    line_number(&line, "owner", decision->owner);
    line_number(&line, "bytes", result->after);
    line_number(&line, "stowed_bytes", result->stowed);
    device_number(&line, "device_bytes", result->device_after);
    line_string(&line, "why", remains_why(decision, result));
    trace_add_line(&line);
}

/* --- beginning a trigger --- */

/* If the list does not fit, the array (in memstow's private memory) grows, and the list is made again. Other threads
 * may open more owners meanwhile, so this is repeated until the list fits. */
bool trigger_list_owners(struct owner_state **owners, uint32_t *capacity, uint32_t *count) {
    *count = owners_list(*owners, *capacity);
    while (*count > *capacity) {
        if (!capacity_grow(owners, capacity, *count, sizeof **owners)) return false;
        *count = owners_list(*owners, *capacity);
    }
    return true;
}

/* In a rescue, treats an owner as not idle if moving its memory would make no room on the device that lacks memory.
 * So this memory stays where it is. */
static void leave_out_others(struct owner_state *owners, uint32_t count) {
    for (uint32_t i = 0; rescue_helps && i < count; i++)
        if (owners[i].idle) owners[i].idle = rescue_helps(owners[i].id);
}

static bool trigger_decide(uint32_t reason, uint64_t needed, bool drops) {
    uint32_t owners;
    trigger.began_ns = os_now();
    struct policy_question question = {.reason = reason,
                                       .can_stow = moving_can_stow,
                                       .can_in_use = moving_can_in_use,
                                       .drops = drops,
                                       .take_kept =
                                           reason == POLICY_RESCUE ? rescue_takes_kept : pressure_wishes()->take_kept,
                                       .needed = needed,
                                       .now_ns = trigger.began_ns,
                                       .idle_ns = pressure_wishes()->idle_ns};
    if (!trigger_list_owners(&trigger.owners, &trigger.owner_capacity, &owners) ||
        !CAPACITY_FOR(&trigger, decisions, decision_capacity, owners) ||
        !CAPACITY_FOR(&trigger, results, result_capacity, owners))
        return false;
    if (reason == POLICY_RESCUE) leave_out_others(trigger.owners, owners);
    trigger.count = policy_decide(trigger.owners, owners, &question, trigger.decisions);
    return true;
}

/* Takes over from a thread that began a trigger and is gone. True: the caller may begin its own trigger. The trace of
 * the other trigger stays unfinished. */
static bool take_over(void) {
    uint32_t thread = os_load32(&trigger.thread);
    bool gone = thread && !seal_is_set() && os_call(SYS_tgkill, os_pid(), thread, 0) == -ESRCH;
    if (!gone || !move_on(STAGE_DECIDED, STAGE_DECIDING)) return false;
    if (os_load32(&trigger.thread) == thread) return true;
    trigger_finish(STAGE_DECIDED); /* another thread has taken over, ended the old trigger and begun its own */
    return false;
}

int64_t trigger_begin(uint32_t reason, const char *text, uint64_t needed, bool drops,
                      const struct memstow_decision **decisions) {
    if (reason < MEMSTOW_RUN_ENDED || reason > POLICY_RESCUE) return -EINVAL;
    if (!move_on(STAGE_NONE, STAGE_DECIDING) && !take_over()) return -EBUSY;
    trigger.thread = seal_is_set() ? 0 : os_tid();
    if (!trigger_decide(reason, needed, drops)) {
        trigger_finish(STAGE_NONE);
        return -ENOMEM;
    }
    trigger.number++;
    trigger.reason = reason;
    trace_begin(reason, text, needed);
    for (uint32_t i = 0; i < trigger.count; i++) trace_decision(&trigger.decisions[i]);
    *decisions = trigger.decisions;
    uint32_t count = trigger.count;
    trigger_finish(STAGE_DECIDED);
    return count;
}

/* --- ending a trigger --- */

/* Carries out one decision. A rescue runs in a hook, so it moves only device memory. */
static struct result trigger_act(const struct memstow_decision *decision) {
    struct result result = {0};
    if (trigger.reason == POLICY_RESCUE) {
        if (decision->action == MEMSTOW_STOW) result.moved = moving_stow_device(decision->owner);
        return result;
    }
    if (decision->action == MEMSTOW_STOW)
        result.moved = (trigger.reason == MEMSTOW_PRESSURE ? moving_stow_host : moving_stow)(decision->owner);
    if (decision->action != MEMSTOW_KEEP || decision->why == MEMSTOW_WHY_RETIRED)
        result.released = moving_release(decision->owner);
    return result;
}

static const struct owner_state *trigger_state_of(uint32_t owner, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (trigger.owners[i].id == owner) return &trigger.owners[i];
    return NULL;
}

/* Notes how much memory each owner still has. An owner that is no longer in the list has none. */
static void see_what_came_of_it(void) {
    uint32_t owners;
    if (!trigger_list_owners(&trigger.owners, &trigger.owner_capacity, &owners)) owners = trigger.owner_capacity;
    for (uint32_t i = 0; i < trigger.count; i++) {
        const struct memstow_decision *decision = &trigger.decisions[i];
        const struct owner_state *state = trigger_state_of(decision->owner, owners);
        struct result *result = &trigger.results[i];
        result->after = state ? state->live_bytes : 0;
        result->stowed = state ? state->stowed_bytes : 0;
        result->device_after = state ? state->device_bytes : 0;
        result->device_stowed = state ? state->device_stowed_bytes : 0;
        result->category =
            policy_category(decision->action, decision->why, policy_sum(decision->live_bytes, decision->device_bytes),
                            policy_sum(result->after, result->device_after), result->stowed);
    }
}

struct sums {
    uint64_t categories[POLICY_CATEGORIES], models, before, after, moved, released, given;
    uint64_t device_before, device_after;
};

static uint64_t what_went(uint64_t before, uint64_t after) { return before > after ? before - after : 0; }

/* The bytes that an owner gave back. `released`: pages of mapped files that memstow gave back to the system
 * (moving_release). `dropped`: what the program freed or unmapped. If the program has unmapped such a file since then,
 * both contain its pages. So only the larger of the two counts. */
static uint64_t given_by(const struct memstow_decision *decision, const struct result *result) {
    uint64_t released = os_not_negative(result->released);
    uint64_t dropped = what_went(decision->live_bytes, result->after);
    bool counts = trigger.reason != MEMSTOW_PRESSURE; /* pressure is about host memory only */
    uint64_t of_devices = counts ? what_went(decision->device_bytes, result->device_after) : 0;
    if (decision->action == MEMSTOW_KEEP && decision->why != MEMSTOW_WHY_RETIRED) return 0;
    uint64_t moved = policy_sum(os_not_negative(result->moved), of_devices);
    if (trigger.reason == POLICY_RESCUE) return moved;
    return policy_sum(moved, dropped > released ? dropped : released);
}

/* Adds the outcome of a decision to the ledger's history of memory over time, as a mark. */
static void mark_category(const struct memstow_decision *decision, const struct result *result) {
    static const enum snap_mark_kind kinds[] = {SNAP_MARK_KEPT, SNAP_MARK_STOWED, SNAP_MARK_FREED, SNAP_MARK_BLOCKED};
    history_mark(&(struct snap_mark){.kind = kinds[result->category],
                                     .owner = decision->owner,
                                     .bytes = given_by(decision, result),
                                     .live = policy_sum(result->after, result->device_after)});
}

static void add_result(struct sums *sums, const struct memstow_decision *decision, const struct result *result) {
    sums->moved = policy_sum(sums->moved, os_not_negative(result->moved));
    sums->released = policy_sum(sums->released, os_not_negative(result->released));
    sums->given = policy_sum(sums->given, given_by(decision, result));
    if (decision->why == MEMSTOW_WHY_EMPTY) return;
    sums->categories[result->category]++;
    sums->models++;
    sums->before = policy_sum(sums->before, decision->live_bytes);
    sums->after = policy_sum(sums->after, result->after);
    sums->device_before = policy_sum(sums->device_before, decision->device_bytes);
    sums->device_after = policy_sum(sums->device_after, result->device_after);
}

static void trace_act(const struct sums *sums) {
    struct line line;
    begin_line(&line, "ACT");
    for (int i = 0; i < POLICY_CATEGORIES; i++)
        line_number(&line, category_word((enum policy_category)i), sums->categories[i]);
    line_number(&line, "models_before", sums->models);
    line_number(&line, "models_after", sums->models - sums->categories[POLICY_FREED]);
    line_number(&line, "before_bytes", sums->before);
    line_number(&line, "after_bytes", sums->after);
    device_number(&line, "device_before_bytes", sums->device_before);
    device_number(&line, "device_after_bytes", sums->device_after);
    line_number(&line, "moved_bytes", sums->moved);
    line_number(&line, "released_bytes", sums->released);
    line_number(&line, "given_bytes", sums->given);
    line_number(&line, "took_ns", os_now() - trigger.began_ns);
    trace_add_line(&line);
}

static bool has_anything(const struct result *result) { return result->after || result->device_after; }

static uint64_t trace_end(void) {
    struct sums sums = {0};
    for (uint32_t i = 0; i < trigger.count; i++) {
        add_result(&sums, &trigger.decisions[i], &trigger.results[i]);
        if (trigger.decisions[i].why == MEMSTOW_WHY_EMPTY) continue;
        trace_category(&trigger.decisions[i], &trigger.results[i]);
        mark_category(&trigger.decisions[i], &trigger.results[i]);
    }
    for (uint32_t i = 0; i < trigger.count; i++)
        if (trigger.decisions[i].why != MEMSTOW_WHY_EMPTY && has_anything(&trigger.results[i]))
            trace_remaining(&trigger.decisions[i], &trigger.results[i]);
    for (int i = 0; i < POLICY_CATEGORIES; i++)
        __atomic_store_n(&trigger.last[i], sums.categories[i], __ATOMIC_RELAXED);
    trace_act(&sums); /* written last: a trigger without this line was not finished */
    return sums.given;
}

static void give_back_spares(void *unused) {
    (void)unused;
    vram_memory_give_back();
}

static void give_back_host_memory(void *unused) {
    (void)unused;
    vram_move_shrink();
}

int64_t trigger_end(void) {
    if (!move_on(STAGE_DECIDED, STAGE_DECIDING)) return -ENOENT;
    mover_begin_call();
    moving_device_trigger = trigger.number;
    if (vram_driver_is_on()) vram_thread_do(give_back_spares, NULL);
    for (uint32_t i = 0; i < trigger.count; i++) trigger.results[i] = trigger_act(&trigger.decisions[i]);
    moving_device_trigger = 0;
    if (trigger.reason == MEMSTOW_PRESSURE && vram_driver_is_on()) vram_thread_do(give_back_host_memory, NULL);
    see_what_came_of_it();
    heaps_tidy();
    uint64_t given = trace_end();
    trigger_finish(STAGE_NONE);
    return given > INT64_MAX ? INT64_MAX : (int64_t)given;
}

void trigger_words(char *to, size_t capacity) {
    char words[POLICY_CATEGORIES * 40] = "", *end = words;
    for (int i = 0; i < POLICY_CATEGORIES; i++) {
        uint64_t count = os_load(&trigger.last[i]);
        if (!count) continue;
        end = stpcpy(end, end > words ? ", " : "");
        end = stpcpy(stpcpy(os_decimal(end, count), " "), category_word((enum policy_category)i));
    }
    os_copy(to, capacity, *words ? words : "no owner has memory");
}

void trigger_cancel(void) {
    if (move_on(STAGE_DECIDED, STAGE_DECIDING)) trigger_finish(STAGE_NONE);
}

int64_t trigger_run(uint32_t reason, const char *text, uint64_t needed) {
    const struct memstow_decision *decisions;
    int64_t count = trigger_begin(reason, text, needed, false, &decisions);
    return count < 0 ? count : trigger_end();
}

int64_t trigger_rescue(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner)) {
    rescue_takes_kept = takes_kept;
    rescue_helps = helps;
    return trigger_run(POLICY_RESCUE, "no device memory was left", needed);
}

void trigger_abandon(void) {
    trigger_finish(STAGE_NONE);
    trigger.number = 0;
}
FORKED(trigger_abandon);
