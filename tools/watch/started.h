/* started.h — tells which program started a process, also when the process's parent is gone. The mark is
 * MEMSTOW_STARTED=PID.START.NUMBER in the environment. All descendants inherit it, whatever their parent, group and
 * session. PID and START identify the program that started them. NUMBER, which is not 0, is different for each process
 * that the program itself started, and is in its list of processes.
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
