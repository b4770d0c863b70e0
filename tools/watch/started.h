/* started.h — whose a process is when who started it is gone: MEMSTOW_STARTED=PID.START.NUMBER in its environment,
 * which all that it starts inherit, whatever their parent, group and session. PID and START are those of the program
 * that began it all; NUMBER, which is not 0, tells apart what it started, and stands in its list of processes. In:
 * /proc. Out: the mark. */
#ifndef MEMSTOW_STARTED_H
#define MEMSTOW_STARTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STARTED_MARK = 64 };

/* PID.START.NUMBER; "" for the number 0. */
void started_mark(char to[STARTED_MARK], pid_t pid, uint64_t start_ticks, uint64_t number);
/* The mark that the process's program began with. False: it has none, that cannot be told, or the process is of another
 * PID namespace than this one, where the numbers mean others. */
bool started_mark_of(pid_t pid, char to[STARTED_MARK]);

#endif
