/* perfmap.h — /tmp/perf-PID.map, in which a JIT compiler says what code it made → names of addresses.
 * In: the header of a ledger, addresses of its process. Out: names. Anybody can put a file there: only one of the
 * process's user or of ours is read, and only if it was written while that process ran; what is no line of it is left
 * out. */
#ifndef MEMSTOW_PERFMAP_H
#define MEMSTOW_PERFMAP_H

#include "preload/shared/snapshot.h"

#include <sys/types.h>

struct perfmap;

/* pid: of the process while it runs, or 0. NULL: there is no such file, or no memory. */
struct perfmap *perfmap_open(const struct snap_header *header, pid_t pid);
void perfmap_close(struct perfmap *map);
/* NULL: not known. Of pieces of code that were at that address, the last one. */
const char *perfmap_name(const struct perfmap *map, uint64_t address);

#endif
