/* spawn.h — runs the memstow command on this very process.
 * In: the path of that command (MEMSTOW_COMMAND, from `memstow run`) and the name for the snapshot's file. Out: 0 or
 * -errno. The program does not notice: neither its signal handlers nor its waits for children see the new process. The
 * new process inherits no descriptor. */
#ifndef MEMSTOW_SPAWN_H
#define MEMSTOW_SPAWN_H

#pragma GCC visibility push(hidden)

/* Implements memstow_snapshot: runs the command and waits until it has ended. Returns 0 or -errno. */
int spawn_snapshot(const char *path);

#pragma GCC visibility pop

#endif
