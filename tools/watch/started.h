/* started.h — tells which program started a process, also when the process's parent is gone. A program gives each
 * process that it starts a mark, the environment variable MEMSTOW_STARTED=PID.START.NUMBER. PID and START are the
 * program's own process id and start time. NUMBER, which is not 0, is different for each process that the program
 * starts; the program also writes it to its list of processes (registry.h). All descendants of such a process inherit
 * the mark, whatever their parent, group and session.
 * In: /proc. Out: the mark. */
#ifndef MEMSTOW_STARTED_H
#define MEMSTOW_STARTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STARTED_MARK = 64 };

/* Writes PID.START.NUMBER; "" for the number 0. */
void started_mark(char to[STARTED_MARK], pid_t pid, uint64_t start_ticks, uint64_t number);
/* Reads the mark from the environment that the process's program began with. False: there is no mark, it cannot be
 * read, or the process is in another PID namespace, where the numbers mean other processes. */
bool started_mark_of(pid_t pid, char to[STARTED_MARK]);

#endif
