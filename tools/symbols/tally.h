/* tally.h — adds a ledger or snapshot to the figures of a baseline, which have stable names (figures.h).
 * In: an image. Out: its total, owners and call sites, on the host and on CUDA devices, added to the present run of the
 * figures. Runs do not count as owners, because they differ each time. For the peak on devices only the total is
 * known. */
#ifndef MEMSTOW_TALLY_H
#define MEMSTOW_TALLY_H

#include "tools/symbols/figures.h"
#include "tools/image/image.h"

#include <sys/types.h>

/* `what` of the functions below. TALLY_OWNERS: the total and the owners. TALLY_SITES: call sites, whose names take
 * longer to find. */
enum { TALLY_OWNERS = 1, TALLY_SITES = 2, TALLY_ALL = 3 };

/* Adds live memory, or memory at the peak if the figures are of the peak. `pid`: the id of the process if it still
 * runs, otherwise 0. Returns 0, or -1 if there is no memory. */
int tally_add(struct figures *figures, struct image *image, pid_t pid, int what);
/* As tally_add, for a file. Returns 0, or an exit code after an error message. A process that went on as another
 * program (exec) adds nothing. */
int tally_file(struct figures *figures, const char *path, int what);

#endif
