/* paths.c — see paths.h. */
#include "preload/stacks/paths.h"

#include <string.h>

#include "preload/base/arena.h"
#include "preload/ledger/ledger.h"

enum { FIRST_BITS = 6, LAST_BITS = 11, FIRST_MISSES = 32 };

static uint32_t paths_size(const struct paths *self) {
    return self->table ? PATHS_WAYS << self->table->bits : FIRST_MISSES;
}

/* Makes a larger table. It begins empty: paths that are still in use are soon added again. */
static void paths_grow(struct paths *self) {
    uint32_t bits = self->table ? self->table->bits + 1 : FIRST_BITS;
    size_t length = sizeof *self->table + ((sizeof *self->table->known * PATHS_WAYS) << bits);
    struct paths_table *larger = bits <= LAST_BITS ? arena_take(length) : NULL;
    self->missed = 0;
    if (!larger) return;
    larger->bits = bits;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    self->table = larger;
    ledger_note_own_memory();
}

/* The new path replaces the entry of its set that `missed` chooses, even if another entry of the set is empty. */
void paths_add(struct paths *self, uint64_t path, uint32_t site) {
    if (++self->missed > paths_size(self)) paths_grow(self);
    if (self->table) paths_set(self->table, path)[self->missed % PATHS_WAYS] = (struct known_path){path, site};
}

void paths_forget(struct paths *self) {
    if (self->table) memset(self->table->known, 0, (sizeof *self->table->known * PATHS_WAYS) << self->table->bits);
}
