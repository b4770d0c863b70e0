/* tally.h — a ledger or snapshot → figures by stable names.
 * In: an image. Out: its total, its owners (models, customs and nodes: a run is another one each time) and its call
 * sites, on the host and on CUDA devices, added to the present run of figures. Of the peak of devices only the total is
 * known. */
#ifndef MEMSTOW_TALLY_H
#define MEMSTOW_TALLY_H

#include "tools/symbols/figures.h"
#include "tools/image/image.h"

#include <sys/types.h>

/* Total and owners; call sites, whose names take longer. */
enum { TALLY_OWNERS = 1, TALLY_SITES = 2, TALLY_ALL = 3 };

/* Adds what is live, or was at the peak if that is what the figures are of. pid: of a running process, or 0. 0, or -1:
 * no memory. */
int tally_add(struct figures *figures, struct image *image, pid_t pid, int what);
/* The same of a file. 0, or an exit code after complaining. What went on as another program (exec) has nothing. */
int tally_file(struct figures *figures, const char *path, int what);

#endif
