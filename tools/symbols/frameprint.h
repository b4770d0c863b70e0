/* frameprint.h — tells whether a later image of a ledger still has the frames of an earlier one.
 * In: images. Out: a hash of an image's frames, Python functions and modules, because the names of frames depend on all
 * these; and whether a later image begins with the same frames, functions and modules. An image of another process with
 * the same pid does not begin with them. */
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
