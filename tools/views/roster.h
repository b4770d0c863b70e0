/* roster.h — the owners of an image, and what each holds.
 * In: an image. Out: a list to show, and ids for what people type. What was adopted counts as its new owner's. */
#ifndef MEMSTOW_ROSTER_H
#define MEMSTOW_ROSTER_H

#include "tools/image/image.h"

#include <stdbool.h>

struct roster_row {
    const struct snap_owner *owner;
    uint64_t live_bytes, live_blocks;
    uint64_t cuda_bytes, cuda_blocks; /* of devices */
};

struct roster {
    struct roster_row *rows; /* owners that hold most first */
    size_t count;
    struct roster_row untagged; /* what no model, node, run or custom has; owner is NULL */
    uint64_t live_bytes;        /* of the process */
    uint64_t cuda_bytes;        /* of devices */
};

/* 0, or -1: no memory. The image must outlive it. */
int roster_make(struct roster *roster, const struct image *image);
void roster_clear(struct roster *roster);

const char *roster_kind(const struct snap_owner *owner);
const char *roster_policy(const struct snap_owner *owner); /* NULL: nothing was said */
/* Of a run that has ended; NULL: of anything else. */
const char *roster_outcome(const struct snap_owner *owner);
bool roster_is_retired(const struct snap_owner *owner);
const char *roster_state(const struct snap_owner *owner); /* live or retired */

/* What of an owner is stowed, of its live bytes and of those in devices. */
struct roster_stowed {
    uint64_t in_files, of_devices;
};
struct roster_stowed roster_stowed(const struct snap_owner *owner, uint64_t live_bytes, uint64_t cuda_bytes);

/* How far the move of it is that is under way in a process that runs; `wanted` is 0 while nobody knows. */
struct roster_moving {
    bool now, out; /* out, or back */
    uint64_t moved, wanted;
};
struct roster_moving roster_moving(const struct image *image, const struct snap_owner *owner);

/* The model or custom that somebody means by an id, or by a name that only one has which is not retired; NULL and why.
 */
const struct snap_owner *roster_find(const struct image *image, const char *meant, char *error, size_t size);

#endif
