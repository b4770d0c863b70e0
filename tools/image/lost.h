/* lost.h — what a ledger could not count or keep, in words. */
#ifndef MEMSTOW_LOST_H
#define MEMSTOW_LOST_H

#include "tools/image/image.h"

struct lost_kind {
    const char *key;  /* in JSON */
    const char *text; /* "TEXT: N" for people */
};

/* NULL for kinds that this version has no words for. */
const struct lost_kind *lost_kind(size_t kind);
/* True when anything was lost. Sites that did not settle count. */
bool lost_any(const struct image *image);

#endif
