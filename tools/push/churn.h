/* churn.h — the memory that each call stack has allocated since the last look.
 * In: images of one process, one after the other. Out: for each total, how much its allocations have grown. A total has
 * the sums of one stack, class of memory, module and tag. Stacks are recognised by their frames, because a process may
 * use the id of a stack again. */
#ifndef MEMSTOW_CHURN_H
#define MEMSTOW_CHURN_H

#include "tools/image/image.h"

struct churn_entry {
    uint64_t key, bytes, blocks; /* key: from churn_key, 0 if free; bytes, blocks: all that was ever allocated */
    uint64_t grown_bytes, grown_blocks;
};
struct churn_table {
    struct churn_entry *entries;
    size_t slots; /* a power of two */
};
struct churn {
    struct churn_table before, now;
    bool looked;      /* there was an earlier look; at the first look nothing has grown */
    uint64_t *stacks; /* by node of the present image: the hash of its stack */
};

/* Looks at all totals of an image. Before the first look, `churn` is all zeros. Returns 0, or -1: no memory. */
int churn_look(struct churn *churn, const struct image *image);
/* The growth of one total. Call it between churn_look and churn_done. For totals with the same key, the first call
 * returns the growth of all of them, and later calls return none. */
struct churn_entry churn_take(struct churn *churn, const struct image *image, const struct total *total);
/* Ends a look. */
void churn_done(struct churn *churn);
void churn_clear(struct churn *churn);

#endif
