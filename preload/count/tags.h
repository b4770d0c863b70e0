/* tags.h — the owners of a thread's allocations, as one number: its scopes and the run. In: owners entered and left by
 * each thread, the present run. Out: the tag; and from the site of a stack, the site of that stack under the tag. As
 * long as no owner was ever registered, nothing of this is looked at: `tags_used` is false.
 *
 * Scopes belong to the thread and its signal handlers. A change of the run, or of an owner's state, moves tags_epoch:
 * each thread then works out its tag anew at its next allocation. */
#ifndef MEMSTOW_TAGS_H
#define MEMSTOW_TAGS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

extern bool tags_used;
extern uint32_t tags_epoch;

struct scopes {
    uint32_t epoch; /* tags_epoch when the next two were worked out; 0: they must be */
    uint32_t tag;
    uint32_t model;    /* the owner of kind model or custom; 0: none */
    struct heap *heap; /* of that owner (heaps.h); NULL: none */
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES]; /* innermost last */
};
extern __thread struct scopes tags_scopes __attribute__((tls_model("initial-exec")));

/* The heap of an owner, made if need be; NULL: it has none. heaps.c sets it once there are heaps. */
extern struct heap *(*tags_heap_of)(uint32_t owner);

/* From now on tags are looked at. Any thread; again does nothing. */
void tags_use(void);
/* Every thread is to work its tag out anew. */
void tags_change(void);
/* The run that is on; 0: none. */
void tags_set_run(uint32_t run);
uint32_t tags_run(void);

/* The calling thread ends: it leaves what it is in. */
void tags_end_thread(void);

/* Works the thread's tag out, if need be. */
void tags_refresh(void);
static inline const struct scopes *tags_present(void) {
    if (unlikely(tags_scopes.epoch != __atomic_load_n(&tags_epoch, __ATOMIC_ACQUIRE))) tags_refresh();
    return &tags_scopes;
}

/* The site of the same stack under the thread's tag. The caller is pinned (pin.h). */
uint32_t tags_site(uint32_t site);

/* The number of a tag, and the tag of a number. 0 is the untagged one; also when there is no room for another. */
uint32_t tags_number(struct snap_tag tag);
struct snap_tag tags_at(uint32_t number);
/* Numbers are below it. */
uint32_t tags_count(void);

/* After ledger_begin. */
void tags_begin(void);

#pragma GCC visibility pop

#endif
