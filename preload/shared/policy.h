/* policy.h — decides for each owner: the action, the order, and the reason. In: figures of owners, and the trigger.
 * Out: decisions. Pure: no memory of its own, no clock, nothing that fails; the same figures give the same list.
 * docs/decisions.md has the rules. */
#ifndef MEMSTOW_POLICY_H
#define MEMSTOW_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"

#pragma GCC visibility push(hidden)

/* The figures of an owner that a decision needs. */
struct owner_state {
    uint32_t id, kind, policy, adopted_by;
    int32_t priority;
    bool retired, scope_open, idle;
    uint64_t live_bytes, live_blocks, device_bytes; /* of the host; of devices, beside them */
    uint64_t movable_bytes, stowed_bytes;           /* of both */
    uint64_t device_movable_bytes, device_stowed_bytes;
    uint64_t last_use_ns;
};
struct policy_question {
    uint32_t reason;  /* enum memstow_reason */
    bool can_stow;    /* memory can be moved at all, */
    bool can_in_use;  /* and also that of owners which are not declared idle */
    bool drops;       /* there is a program that drops what is to be freed */
    bool take_kept;   /* under pressure, or in a rescue, kept owners may be stowed, after all others */
    uint64_t needed;  /* under pressure, or in a rescue: bytes; 0: as much as can be had */
    uint64_t now_ns;  /* for MEMSTOW_IDLE: */
    uint64_t idle_ns; /* not used for so long */
};

/* A reason of memstow's own, and its word; no program may give it: a device had no memory for a request. */
enum { POLICY_RESCUE = MEMSTOW_IDLE + 1 };
enum { POLICY_WHY_RESCUE = MEMSTOW_WHY_RECENT + 1 };

/* Every run may leave a retired owner with a little. The list has at most so many of these. */
enum { POLICY_RETIRED_MOST = 32 };

/* Sorts the owners, and writes the decisions; `out` has place for `count`. Returns how many there are. */
uint32_t policy_decide(struct owner_state *owners, uint32_t count, const struct policy_question *question,
                       struct memstow_decision *out);

/* The outcome of a decision, from what was live before and after it, on the host and on devices, and what is stowed
 * now. */
enum policy_category { POLICY_KEPT, POLICY_STOWED, POLICY_FREED, POLICY_BLOCKED, POLICY_CATEGORIES };
enum policy_category policy_category(uint32_t action, uint32_t why, uint64_t before, uint64_t after, uint64_t stowed);

/* Whether an owner became idle after `since`, and its policy has something to do then. */
bool policy_became_idle(const struct owner_state *owner, const struct policy_question *question, uint64_t since);

static inline uint64_t policy_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

#pragma GCC visibility pop

#endif
