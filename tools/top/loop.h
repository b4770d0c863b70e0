/* loop.h — memstow top, from its first picture to its end.
 * In: a pid, or 0 for the list of processes. Out: an exit code; a terminal as it was before. */
#ifndef MEMSTOW_TOP_LOOP_H
#define MEMSTOW_TOP_LOOP_H

#include <sys/types.h>

int loop_run(pid_t pid);

#endif
