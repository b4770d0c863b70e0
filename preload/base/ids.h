/* ids.h — a set of record ids below 2^24: one bit for each id, and one summary bit for each 64 ids.
 * In: ids. Out: whether an id is in the set; the lowest id of the set from a given id on. Any thread may add, take and
 * ask at any time, without a lock. Two threads never take the same id. */
#ifndef MEMSTOW_IDS_H
#define MEMSTOW_IDS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { IDS_LIMIT = 1 << 24, IDS_NONE = UINT32_MAX };

struct ids {
    uint64_t words[IDS_LIMIT / 64], summary[IDS_LIMIT / 64 / 64]; /* only touched pages cost memory */
    uint64_t count;
    /* Words with a lower index than this one are empty, so ids_take skips them. There is one exception: if a thread
     * adds an id while another thread is in ids_take, the new id may lie in a skipped word. So if ids_take finds no id,
     * it searches the skipped words, too. */
    uint32_t lowest;
};

/* A new, empty set from the arena. NULL: there is no memory. */
struct ids *ids_new(void);

/* A set that is made at its first use. ids_known returns NULL until the set is made. ids_made returns the set, and
 * makes it first if there is none yet. NULL: there is no memory. */
struct ids *ids_known(struct ids **set);
struct ids *ids_made(struct ids **set);

/* Adds an id. False: it was in the set already. */
bool ids_add(struct ids *self, uint32_t id);
/* As ids_add, for a set that only one thread at a time uses. It does not update the set's count. */
bool ids_mark(struct ids *self, uint32_t id);
/* Takes an id out of the set. False: it was not in the set. */
bool ids_remove(struct ids *self, uint32_t id);
bool ids_has(const struct ids *self, uint32_t id);

/* The lowest id of the set from `from` on, or IDS_NONE. */
uint32_t ids_next(const struct ids *self, uint32_t from);
/* As ids_next, and takes the id out of the set. */
uint32_t ids_take(struct ids *self, uint32_t from);

uint64_t ids_count(const struct ids *self);

/* Adds up to 64 ids: for each bit b that is set in `bits`, the id 64 * word + b. None of these ids may be in the
 * set. */
void ids_add_word(struct ids *self, uint32_t word, uint64_t bits);
/* Takes out the ids that ids_add_word would add. Only one thread may use the set, and the set's count is not
 * updated. */
void ids_unmark_word(struct ids *self, uint32_t word, uint64_t bits);

/* Empties the set. Call it only while no other thread knows the set. */
void ids_clear(struct ids *self);

#pragma GCC visibility pop

#endif
