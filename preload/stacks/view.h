/* view.h — how much of the calling thread's present stack can be read.
 * In: slots (addresses of words on a stack). Out: how far outwards from them memory can be read. It asks the kernel
 * only about pages that are not known yet, and about none in a sandbox. It keeps errno. All data belong to the calling
 * thread. */
#ifndef MEMSTOW_VIEW_H
#define MEMSTOW_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

struct region {
    uintptr_t low, high;
};

static inline bool region_has(const struct region *region, uintptr_t slot) {
    return slot - region->low < region->high - region->low;
}

/* A thread's own stack. */
struct own_stack {
    struct region known; /* the part that is known to be readable */
    uintptr_t hole;      /* a page below `known` that could not be read; 0: none is known */
};

/* Whether the slot lies on the thread's own stack. If so, everything from the slot to the end of that stack can be
 * read, now and later. Once the process is in a sandbox, nothing more can be found out: a stack that was unknown before
 * counts as foreign. */
bool view_own_stack(struct own_stack *self, uintptr_t slot);

static inline bool own_stack_has(struct own_stack *self, uintptr_t slot) {
    return likely(region_has(&self->known, slot)) || view_own_stack(self, slot);
}

/* The part of the present stack that can be read. On the thread's own stack it begins at the slot. On any other stack
 * it begins with the slot's page, which can be read because it was just written to; further pages are examined only as
 * far as needed. */
struct view {
    uintptr_t low, high;
    bool own;
    bool ended; /* the stack was unwound to its end */
};

static inline struct view view_of_own(const struct own_stack *own, uintptr_t slot) {
    return (struct view){slot, own->known.high, true, false};
}

static inline struct view view_of_other(uintptr_t slot) {
    uintptr_t low = slot & ~(uintptr_t)(OS_PAGE - 1);
    return (struct view){low, low + OS_PAGE, false, false};
}

/* Finds out how much of the memory up to `end` can be read, and sets view->high to the end of the readable part. */
void view_look_up_to(struct view *view, uintptr_t end);

/* Whether the word at `address` can be read. The word lies beyond the part of the stack that is known to be
 * readable. */
bool view_reaches(struct view *view, uintptr_t address);

/* The word at an address. NULL: the word cannot be read, is not aligned, or lies below `above`, where no outer frame
 * lies. */
static inline const uint64_t *view_word(struct view *view, uintptr_t above, uintptr_t address) {
    if (address < above || address % sizeof(uint64_t)) return NULL;
    return likely(address < view->high) || view_reaches(view, address) ? (const uint64_t *)address : NULL;
}

#pragma GCC visibility pop

#endif
