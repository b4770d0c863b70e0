/* policy.h — decides for owners (models and other things that have memory) whether their memory stays, is moved out or
 * is freed, in which order, and why.
 * In: figures of owners, and the reason for deciding now. Out: decisions. Pure: no memory of its own, no clock, no
 * failure; the same figures give the same list. docs/decisions.md has the rules. */
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
    uint64_t live_bytes, live_blocks, device_bytes; /* live: on the host only; device: on devices */
    uint64_t movable_bytes, stowed_bytes;           /* host and devices together */
    /* the parts of movable_bytes and stowed_bytes that are device memory */
    uint64_t device_movable_bytes, device_stowed_bytes;
    uint64_t last_use_ns; /* CLOCK_MONOTONIC */
};
struct policy_question {
    uint32_t reason; /* enum memstow_reason */
    bool can_stow;   /* memory can be moved at all */
    bool can_in_use; /* memory can be moved even if the owner is not idle */
    bool drops;      /* the program will free the memory of owners with the policy free */
    /* Under pressure or in a rescue, owners with the policy keep may be stowed, too. They come after all others. */
    bool take_kept;
    uint64_t needed;  /* how many bytes to gain under pressure or in a rescue; 0 means as many as possible */
    uint64_t now_ns;  /* for MEMSTOW_IDLE: the present time, from the clock that last_use_ns has, too */
    uint64_t idle_ns; /* for MEMSTOW_IDLE: how long an owner must be unused before its policy is applied */
};

/* Two numbers for a rescue, which begins when a device had no memory for a request. POLICY_RESCUE is the reason of the
 * trigger, POLICY_WHY_RESCUE the reason of a decision. Only memstow itself uses them: a program may not. */
enum { POLICY_RESCUE = MEMSTOW_IDLE + 1 };
enum { POLICY_WHY_RESCUE = MEMSTOW_WHY_RECENT + 1 };

/* At most this many retired owners get a decision. Without this limit, every run might make the list of decisions
 * longer. */
enum { POLICY_RETIRED_MOST = 32 };

/* Decides for each model, custom owner and value of the store. Leaves out adopted owners, and retired owners without
 * memory. Writes the decisions to `out` in the order in which they are to be carried out, and returns their number.
 * `out` has the capacity `count`. The array `owners` is changed: the owners that were not left out are sorted to its
 * front, and may overwrite those that were left out. */
uint32_t policy_decide(struct owner_state *owners, uint32_t count, const struct policy_question *question,
                       struct memstow_decision *out);

/* The outcome of a decision. Memory was to go if the action was to stow or free it, or if it stayed only because the
 * owner was in use, could not be moved or was retired.
 *   - KEPT: the memory was not to go.
 *   - STOWED: the action was to stow, and some bytes are stowed.
 *   - FREED: the memory was to go, it is not STOWED, and at most 5 % of the bytes are left.
 *   - BLOCKED: the memory was to go, it is not STOWED, and more than 5 % of the bytes are left.
 * `before` and `after` are live bytes on host and devices; `stowed` are the bytes that are stowed now. */
enum policy_category { POLICY_KEPT, POLICY_STOWED, POLICY_FREED, POLICY_BLOCKED, POLICY_CATEGORIES };
enum policy_category policy_category(uint32_t action, uint32_t why, uint64_t before, uint64_t after, uint64_t stowed);

/* Whether both are true: the owner became idle (unused for idle_ns) after the time `since`, and its policy would now
 * stow or free memory of it. */
bool policy_became_idle(const struct owner_state *owner, const struct policy_question *question, uint64_t since);

static inline uint64_t policy_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

#pragma GCC visibility pop

#endif
