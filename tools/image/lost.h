/* lost.h — the texts for events that a ledger could not count or keep.
 * In: a kind of loss (enum snap_lost). Out: its key and its text. In: an image. Out: whether it has any loss. */
#ifndef MEMSTOW_LOST_H
#define MEMSTOW_LOST_H

#include "tools/image/image.h"

struct lost_kind {
    const char *key;  /* key in JSON */
    const char *text; /* text for people: "TEXT: N" */
};

/* Returns the texts for a kind of loss (enum snap_lost), or NULL if this version does not know the kind. */
const struct lost_kind *lost_kind(size_t kind);
/* Whether anything was lost. Totals that changed while they were read (image->inexact) count as lost, too. */
bool lost_any(const struct image *image);

#endif
