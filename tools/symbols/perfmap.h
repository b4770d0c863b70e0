/* perfmap.h — names for the addresses of JIT-compiled code, from /tmp/perf-PID.map.
 * In: the header of a ledger, addresses of its process. Out: names. Anybody can put a file at that path. So the file
 * must belong to the process's user or to ours, and must have been written while the process ran. Malformed lines are
 * skipped. */
#ifndef MEMSTOW_PERFMAP_H
#define MEMSTOW_PERFMAP_H

#include "preload/shared/snapshot.h"

#include <sys/types.h>

struct perfmap;

/* Opens the file of the process that has this header. `pid`: the id of the process if it still runs, otherwise 0.
 * Returns NULL if there is no such file, if the file belongs to another process, or if there is no memory. */
struct perfmap *perfmap_open(const struct snap_header *header, pid_t pid);
void perfmap_close(struct perfmap *map);
/* Returns the name of the code at the address, or NULL if it is not known. If several pieces of code were at that
 * address one after the other, returns the name of the newest. */
const char *perfmap_name(const struct perfmap *map, uint64_t address);

#endif
