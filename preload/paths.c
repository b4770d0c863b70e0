/* paths.c — see paths.h. */
#include "paths.h"

#include "arena.h"
#include "ledger.h"

enum { FIRST_BITS = 6, LAST_BITS = 11, FIRST_MISSES = 32 };

static uint32_t size(const struct paths *self) { return self->known ? PATHS_WAYS << self->bits : FIRST_MISSES; }

/* What is known is lost, and comes again soon. */
static void grow(struct paths *self) {
    uint32_t bits = self->known ? self->bits + 1 : FIRST_BITS;
    struct known_path *larger = bits <= LAST_BITS ? arena_take((sizeof *larger * PATHS_WAYS) << bits) : NULL;
    self->missed = 0;
    if (!larger) return;
    self->known = larger;
    self->bits = bits;
    ledger_note_own_memory();
}

/* The ways of a set take turns. */
void paths_add(struct paths *self, uint64_t path, uint32_t site) {
    if (++self->missed > size(self)) grow(self);
    if (self->known) paths_set(self, path)[self->missed % PATHS_WAYS] = (struct known_path){path, site};
}
