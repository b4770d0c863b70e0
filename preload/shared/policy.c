/* policy.c — see policy.h. */
#include "preload/shared/policy.h"
#include "preload/shared/heapsort.h"

/* A decision about one owner, before the needed bytes are considered. */
struct verdict {
    uint32_t policy, action, why;
};

static struct verdict policy_keep(uint32_t policy, uint32_t why) { return (struct verdict){policy, MEMSTOW_KEEP, why}; }

/* An unknown policy counts as keep, which does nothing. */
static uint32_t known_policy(uint32_t policy) {
    return policy == MEMSTOW_STOW || policy == MEMSTOW_FREE ? policy : MEMSTOW_KEEP;
}

static uint64_t bytes_of(const struct owner_state *owner) { return policy_sum(owner->live_bytes, owner->device_bytes); }

/* Whether the owner's device memory can leave its device now. The owner must be idle, because a device cannot wait for
 * memory to come back. Under pressure the answer is false, because the memory would go to the host, which is short of
 * memory. */
static bool can_leave_device(const struct owner_state *owner, const struct policy_question *question) {
    return owner->idle && question->reason != MEMSTOW_PRESSURE;
}

static bool can_move(const struct owner_state *owner, const struct policy_question *question) {
    bool of_host = owner->live_bytes && (question->can_in_use || owner->idle);
    return question->can_stow && (of_host || (owner->device_bytes && can_leave_device(owner, question)));
}

/* Whether the owner was used in the last idle_ns. The caller reads the clock (now_ns) before it reads the owners'
 * figures, so the latest use may be later than now_ns. */
static bool used_lately(const struct owner_state *owner, const struct policy_question *question) {
    return owner->last_use_ns > question->now_ns || question->now_ns - owner->last_use_ns < question->idle_ns;
}

static uint64_t left_of(uint64_t movable, uint64_t stowed) { return movable > stowed ? movable - stowed : 0; }

static uint64_t left_to_move(const struct owner_state *owner, const struct policy_question *question) {
    uint64_t left = left_of(owner->movable_bytes, owner->stowed_bytes);
    uint64_t in_device = left_of(owner->device_movable_bytes, owner->device_stowed_bytes);
    if (question->reason == POLICY_RESCUE) return in_device;
    return can_leave_device(owner, question) ? left : left_of(left, in_device);
}

static struct verdict verdict_kept(const struct owner_state *owner, const struct policy_question *question) {
    bool taken = question->reason == MEMSTOW_PRESSURE && question->take_kept && !owner->scope_open &&
                 can_move(owner, question) && left_to_move(owner, question);
    if (taken) return (struct verdict){MEMSTOW_KEEP, MEMSTOW_STOW, MEMSTOW_WHY_PRESSURE};
    return policy_keep(MEMSTOW_KEEP, owner->policy == MEMSTOW_KEEP ? MEMSTOW_WHY_POLICY : MEMSTOW_WHY_NOTHING_SAID);
}

/* In a rescue only memory that leaves the device helps, and only idle owners can move. An owner whose policy is
 * MEMSTOW_FREE is stowed instead, because the program cannot drop it now. */
static struct verdict verdict_in_rescue(const struct owner_state *owner, const struct policy_question *question) {
    uint32_t policy = known_policy(owner->policy);
    bool movable = owner->idle && !owner->scope_open && left_to_move(owner, question);
    if (policy == MEMSTOW_KEEP && !(question->take_kept && movable)) return verdict_kept(owner, question);
    if (owner->scope_open) return policy_keep(policy, MEMSTOW_WHY_IN_USE);
    if (!owner->idle || !owner->device_bytes) return policy_keep(policy, MEMSTOW_WHY_CANNOT);
    return (struct verdict){policy, MEMSTOW_STOW, policy == MEMSTOW_STOW ? MEMSTOW_WHY_POLICY : POLICY_WHY_RESCUE};
}

static struct verdict verdict_of(const struct owner_state *owner, const struct policy_question *question) {
    uint32_t policy = known_policy(owner->policy);
    if (owner->retired) return policy_keep(policy, MEMSTOW_WHY_RETIRED);
    if (!bytes_of(owner)) return policy_keep(policy, MEMSTOW_WHY_EMPTY);
    if (question->reason == POLICY_RESCUE) return verdict_in_rescue(owner, question);
    if (policy == MEMSTOW_KEEP) return verdict_kept(owner, question);
    if (owner->scope_open) return policy_keep(policy, MEMSTOW_WHY_IN_USE);
    if (question->reason == MEMSTOW_IDLE && used_lately(owner, question))
        return policy_keep(policy, MEMSTOW_WHY_RECENT);
    bool in_vain = question->reason == MEMSTOW_PRESSURE && !owner->live_bytes; /* pressure is about host memory only */
    if (in_vain || (policy == MEMSTOW_STOW && !can_move(owner, question)))
        return policy_keep(policy, MEMSTOW_WHY_CANNOT);
    return (struct verdict){policy, policy, MEMSTOW_WHY_POLICY};
}

static bool is_listed(const struct owner_state *owner) {
    bool has_policy = owner->kind == MEMSTOW_MODEL || owner->kind == MEMSTOW_CUSTOM || owner->kind == MEMSTOW_STATE;
    return has_policy && !owner->adopted_by && !(owner->retired && !bytes_of(owner));
}

/* --- the order of owners --- */

static int policy_rank(const struct owner_state *owner, const struct policy_question *question) {
    if (owner->retired) return 4;
    struct verdict verdict = verdict_of(owner, question);
    if (verdict.action == MEMSTOW_KEEP) return 3;
    if (verdict.action == MEMSTOW_STOW && verdict.policy == MEMSTOW_KEEP) return 2;
    return verdict.action == MEMSTOW_STOW && question->reason != MEMSTOW_PRESSURE;
}

static int policy_compare(uint64_t a, uint64_t b) { return a < b ? -1 : a > b; }

static bool comes_before(const struct owner_state *a, const struct owner_state *b,
                         const struct policy_question *question) {
    int order = policy_rank(a, question) - policy_rank(b, question);
    if (!order && a->retired) order = policy_compare(bytes_of(b), bytes_of(a));
    if (!order) order = (a->priority > b->priority) - (a->priority < b->priority);
    if (!order) order = policy_compare(a->last_use_ns, b->last_use_ns);
    if (!order) order = policy_compare(bytes_of(b), bytes_of(a));
    if (!order) order = policy_compare(a->id, b->id);
    return order < 0;
}

/* libc's qsort is not used: for long lists it takes memory from the program's allocator. */
HEAPSORT_BY(struct owner_state, sort_owners, const struct policy_question, comes_before)

/* --- making decisions --- */

static uint64_t gain_of(const struct owner_state *owner, uint32_t action, const struct policy_question *question) {
    if (action == MEMSTOW_STOW) return left_to_move(owner, question);
    return action == MEMSTOW_FREE && question->drops ? owner->live_bytes : 0;
}

uint32_t policy_decide(struct owner_state *owners, uint32_t count, const struct policy_question *question,
                       struct memstow_decision *out) {
    uint64_t needed = question->needed ? question->needed : UINT64_MAX;
    bool bounded = (question->reason == MEMSTOW_PRESSURE || question->reason == POLICY_RESCUE) && question->needed;
    uint32_t listed = 0, decisions = 0, retired = 0;
    for (uint32_t i = 0; i < count; i++)
        if (is_listed(&owners[i])) owners[listed++] = owners[i];
    sort_owners(owners, listed, question);
    for (uint32_t i = 0; i < listed; i++) {
        /* Retired owners are sorted to the end, the largest of them first. So this leaves out only retired owners. */
        if (owners[i].retired && retired++ == POLICY_RETIRED_MOST) break;
        struct verdict verdict = verdict_of(&owners[i], question);
        if (bounded && !needed && verdict.action != MEMSTOW_KEEP)
            verdict = policy_keep(verdict.policy, MEMSTOW_WHY_NOT_NEEDED);
        uint64_t gain = bounded ? gain_of(&owners[i], verdict.action, question) : 0;
        needed -= gain < needed ? gain : needed;
        out[decisions++] = (struct memstow_decision){.owner = owners[i].id,
                                                     .policy = verdict.policy,
                                                     .action = verdict.action,
                                                     .why = verdict.why,
                                                     .live_bytes = owners[i].live_bytes,
                                                     .device_bytes = owners[i].device_bytes};
    }
    return decisions;
}

/* --- the outcomes of decisions --- */

static bool should_have_gone(uint32_t action, uint32_t why) {
    return action != MEMSTOW_KEEP || why == MEMSTOW_WHY_IN_USE || why == MEMSTOW_WHY_CANNOT ||
           why == MEMSTOW_WHY_RETIRED;
}

enum policy_category policy_category(uint32_t action, uint32_t why, uint64_t before, uint64_t after, uint64_t stowed) {
    if (!should_have_gone(action, why)) return POLICY_KEPT;
    if (action == MEMSTOW_STOW && stowed) return POLICY_STOWED;
    return after <= before / 20 ? POLICY_FREED : POLICY_BLOCKED;
}

bool policy_became_idle(const struct owner_state *owner, const struct policy_question *question, uint64_t since) {
    struct verdict verdict = verdict_of(owner, question);
    if (!is_listed(owner) || verdict.action == MEMSTOW_KEEP) return false;
    if (verdict.action == MEMSTOW_STOW && !left_to_move(owner, question)) return false;
    return policy_sum(owner->last_use_ns, question->idle_ns) > since;
}
