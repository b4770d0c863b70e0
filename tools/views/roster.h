/* roster.h — the owners of an image, and the memory of each.
 * In: an image. Out: a list of all owners with their memory, and the owner that a user's words mean. Memory of an
 * adopted owner counts for the owner that adopted it. */
#ifndef MEMSTOW_ROSTER_H
#define MEMSTOW_ROSTER_H

#include "tools/image/image.h"

#include <stdbool.h>

struct roster_row {
    const struct snap_owner *owner;
    uint64_t live_bytes, live_blocks;
    uint64_t cuda_bytes, cuda_blocks; /* on devices */
};

struct roster {
    struct roster_row *rows; /* owners with the most memory first */
    size_t count;
    struct roster_row untagged; /* memory without any owner; `owner` is NULL */
    uint64_t live_bytes;        /* of the whole process */
    uint64_t cuda_bytes;        /* on devices */
};

/* Lists the owners of an image. Returns 0, or -1: no memory. The image must outlive the roster. */
int roster_make(struct roster *roster, const struct image *image);
void roster_clear(struct roster *roster);

const char *roster_kind(const struct snap_owner *owner);
const char *roster_policy(const struct snap_owner *owner); /* NULL: no policy was set */
enum { ROSTER_OUTCOMES = 4 };
/* The word for an outcome below ROSTER_OUTCOMES. */
const char *roster_outcome_word(uint32_t outcome);
/* The outcome, if the owner is a run that has ended; else NULL. */
const char *roster_outcome(const struct snap_owner *owner);
bool roster_is_retired(const struct snap_owner *owner);
const char *roster_state(const struct snap_owner *owner); /* live or retired */

/* How much of an owner's memory is stowed, in bytes. in_files: host memory that is stowed. of_devices: device memory
 * that is stowed. */
struct roster_stowed {
    uint64_t in_files, of_devices;
};
struct roster_stowed roster_stowed(const struct snap_owner *owner, uint64_t live_bytes, uint64_t cuda_bytes);

/* Progress of an owner's move in a running process. `wanted`: bytes of the whole move; 0: not known yet. */
struct roster_moving {
    bool now, out; /* now: a move is under way; out: this move stows (false: it restores) */
    uint64_t moved, wanted;
};
struct roster_moving roster_moving(const struct image *image, const struct snap_owner *owner);

/* Finds a model, custom or state owner by an id or a name. If several owners that are not retired have the name, it
 * finds none. NULL: `error` has the reason. */
const struct snap_owner *roster_find(const struct image *image, const char *meant, char *error, size_t size);

#endif
