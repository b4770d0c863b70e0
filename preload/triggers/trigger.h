/* trigger.h — the moment when policies are applied. In: a reason, owners as they are (owners.h). Out: decisions, their
 * outcome, and the trace of both. Outside of hooks. There is one trigger at a time; one thread may begin it and another
 * one end it. docs/decisions.md has the rules and the lines. */
#ifndef MEMSTOW_TRIGGER_H
#define MEMSTOW_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/owners/owners.h"

#pragma GCC visibility push(hidden)

/* `reason`: enum memstow_reason, or POLICY_RESCUE, which may also come in a hook and moves device memory alone. Returns
 * the number of decisions, which stay at `*decisions` until trigger_end; or -EINVAL, -EBUSY, -ENOMEM. `drops`: the
 * caller drops what is to be freed before it ends the trigger. */
int64_t trigger_begin(uint32_t reason, const char *text, uint64_t needed, bool drops,
                      const struct memstow_decision **decisions);
/* The bytes given back; -ENOENT: no trigger is on. */
int64_t trigger_end(void);
/* Ends it with nothing done; the trace shows one that was not finished. */
void trigger_cancel(void);
/* Both, for memstow's own: nobody drops anything. */
int64_t trigger_run(uint32_t reason, const char *text, uint64_t needed);

/* What came of the last one that ended, in words: "2 kept, 1 freed". */
void trigger_words(char *to, size_t room);

/* Notes in the trace that a policy was set, or changed. */
void trigger_note_policy(uint32_t owner, uint32_t kind, const char *name, const uint64_t keys[2], uint32_t policy,
                         int32_t priority);

/* The same for a device that has no memory left (vram_rescue.h): whether owners that are to be kept may be stowed,
 * after all others, and whether what an owner has would help: with several devices it may lie in another one. NULL: it
 * would.
 */
int64_t trigger_rescue(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner));

/* All owners, in an array that grows. False: no memory. */
bool trigger_list_owners(struct owner_state **owners, uint32_t *room, uint32_t *count);

/* In a forked child: no trigger is on. */
void trigger_abandon(void);

#pragma GCC visibility pop

#endif
