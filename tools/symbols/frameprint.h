/* frameprint.h — tells whether a later image of a ledger still has the frames of an earlier one.
 * In: the two images. Out:
 * - of the earlier image: a hash of all on which the names of its frames depend: frames, Python functions and modules;
 * - of the later image: whether it begins with the same frames, functions and modules. The image of another process
 *   that got the same pid later does not. */
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
