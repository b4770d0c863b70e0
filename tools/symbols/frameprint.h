/* frameprint.h — tells whether a later image of a ledger still has the frames of an earlier one.
 * In: images. Out: a hash of everything on which the names of an image's frames depend: its frames, Python functions
 * and modules. Out, too: whether a later image begins with the same frames, functions and modules. If another process
 * has got the pid, its image does not begin with them. */
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
