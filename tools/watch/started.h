/* started.h — tells which program a process belongs to when its parent is gone, by MEMSTOW_STARTED=PID.START.NUMBER in
 * its environment. All descendants inherit it, whatever their parent, group and session. PID and START are those of the
 * first program. NUMBER, which is not 0, tells apart the processes that it started, and is in its list of processes.
 * In: /proc. Out: the mark. */
#ifndef MEMSTOW_STARTED_H
#define MEMSTOW_STARTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STARTED_MARK = 64 };

/* Writes PID.START.NUMBER; "" for the number 0. */
void started_mark(char to[STARTED_MARK], pid_t pid, uint64_t start_ticks, uint64_t number);
/* The mark in the environment that the process's program began with. False: it has none, it cannot be read, or the
 * process is in another PID namespace, where the numbers mean other processes. */
bool started_mark_of(pid_t pid, char to[STARTED_MARK]);

#endif
