/* trigger.h — applies policies. A *trigger* is a moment when memstow decides for each owner (a model or another thing
 * that has memory) whether its memory stays, is moved out or is freed, and carries these decisions out.
 * In: a reason, and the present figures of owners (owners.h). Out: decisions, their outcome, and the trace of both.
 * Call it outside of hooks; only a rescue may come from a hook. There is one trigger at a time. A thread may end a
 * trigger that another thread began. docs/decisions.md has the rules and the lines of the trace. */
#ifndef MEMSTOW_TRIGGER_H
#define MEMSTOW_TRIGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/owners/owners.h"

#pragma GCC visibility push(hidden)

/* Begins a trigger: makes the decisions, and carries out none yet.
 * - reason: of enum memstow_reason, or POLICY_RESCUE if a device has no memory for a request
 * - text: the reason in words
 * - needed: how many bytes are to be given back; used only if the reason is pressure or a rescue
 * - drops: whether the caller will free the memory of the owners that are to be freed, before it ends the trigger
 * Returns the number of decisions, or -EINVAL, -EBUSY (another trigger is in progress) or -ENOMEM. The decisions stay
 * at `*decisions` until trigger_end. */
int64_t trigger_begin(uint32_t reason, const char *text, uint64_t needed, bool drops,
                      const struct memstow_decision **decisions);
/* Carries out the decisions, and ends the trigger. Returns the bytes that were given back; -ENOENT: there is no
 * trigger. */
int64_t trigger_end(void);
/* Ends the trigger, and carries out none of its decisions. The trace shows the trigger as unfinished. */
void trigger_cancel(void);
/* Begins and ends a trigger of memstow's own. The program does not take part, so nobody frees the memory of owners that
 * are to be freed. Returns the bytes that were given back, or -errno. */
int64_t trigger_run(uint32_t reason, const char *text, uint64_t needed);

/* The outcome of the latest trigger in words: "2 kept, 1 freed". */
void trigger_words(char *to, size_t capacity);

/* Notes in the trace that a policy was set or changed. */
void trigger_note_policy(uint32_t owner, uint32_t kind, const char *name, const uint64_t keys[2], uint32_t policy,
                         int32_t priority);

/* Makes a trigger for a device without free memory (rescue.h). The trigger moves only device memory. If `takes_kept`
 * is true, owners with the policy `keep` may be stowed, too, after all other owners. helps(owner) says whether
 * moving the owner's memory out makes room on the device that lacks memory. If `helps` is NULL, every owner's memory
 * makes room. Returns the bytes that were given back, or -errno. */
int64_t trigger_rescue(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner));

/* Lists owners as owners_list does, in an array that grows. False: there is no memory. */
bool trigger_list_owners(struct owner_state **owners, uint32_t *capacity, uint32_t *count);

/* Runs in a forked child: forgets the parent's trigger, and begins the numbers of triggers anew. */
void trigger_abandon(void);

#pragma GCC visibility pop

#endif
