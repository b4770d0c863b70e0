/* tags.h — the owners of a thread's allocations, as one number (the tag).
 * In: the owners that each thread enters and leaves, and the present run. Out: the tag, and the site of a stack under
 * that tag.
 * As long as no owner was registered, `tags_used` is false, and hooks look up no tag.
 *
 * Scopes belong to the thread and its signal handlers. A change of the run or of an owner's state changes tags_epoch.
 * Each thread then works its tag out anew at its next allocation. */
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
    uint32_t epoch; /* tags_epoch when the tag and the model were worked out; 0: they are out of date */
    uint32_t tag;
    uint32_t model;    /* the owner of kind model or custom; 0: none */
    struct heap *heap; /* the heap of that owner (heaps.h); NULL: none */
    uint32_t count;
    uint32_t owners[MEMSTOW_SCOPES]; /* the owners of the open scopes, the innermost at count - 1 */
};
extern __thread struct scopes tags_scopes __attribute__((tls_model("initial-exec")));
/* How many load phases of the thread are open (memstow_load_begin). */
extern __thread uint32_t tags_loads __attribute__((tls_model("initial-exec")));

/* The heap of an owner, which is made on the first call; NULL: the owner has none. heaps.c sets this function when
 * there are heaps. */
extern struct heap *(*tags_heap_of)(uint32_t owner);

/* Turns tags on. Any thread may call; a second call does nothing. */
void tags_use(void);
/* Makes all threads work their tags out anew. */
void tags_change(void);
/* Sets the present run, for all threads; 0: none. The caller holds owner_registry. */
void tags_set_run(uint32_t run);
/* The present run; 0: none. */
uint32_t tags_run(void);

/* Call it when the calling thread ends: the thread leaves its scopes. */
void tags_end_thread(void);

/* Works the thread's tag out. tags_present calls it when the tag is out of date. */
void tags_refresh(void);
static inline const struct scopes *tags_present(void) {
    if (unlikely(tags_scopes.epoch != __atomic_load_n(&tags_epoch, __ATOMIC_ACQUIRE))) tags_refresh();
    return &tags_scopes;
}

/* The site of the same stack under the thread's tag. The caller is pinned (pin.h). */
uint32_t tags_site(uint32_t site);

/* The number of a tag, and the tag of a number. 0 is the empty tag. tags_number also returns 0 when there is no
 * memory. */
uint32_t tags_number(struct snap_tag tag);
struct snap_tag tags_at(uint32_t number);
/* The highest number, plus one. */
uint32_t tags_count(void);

/* Call it after ledger_begin. */
void tags_begin(void);

#pragma GCC visibility pop

#endif
