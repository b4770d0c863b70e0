/* frameprint.h — tells whether two images of one ledger, one later than the other, have the same frames.
 * In: images. Out: a hash of an image's frames, Python functions and modules, which names depend on; and whether a
 * later image begins with the same ones. Ids in a ledger are never used again, but the pid of a process is. */
#ifndef MEMSTOW_FRAMEPRINT_H
#define MEMSTOW_FRAMEPRINT_H

#include "tools/image/image.h"

struct frameprint {
    size_t frames, codes, modules; /* how many of them the hash is of */
    uint64_t hash;
};

struct frameprint frameprint_of(const struct image *image);
/* Whether the image begins with the frames, functions and modules of the print. It may have more. */
bool frameprint_fits(const struct frameprint *print, const struct image *image);

#endif
