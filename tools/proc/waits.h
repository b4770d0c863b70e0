/* waits.h — the system call that a thread waits in.
 * In: /proc/PID/task/TID/syscall. Out: the name of the call, and the descriptor that it uses. */
#ifndef MEMSTOW_WAITS_H
#define MEMSTOW_WAITS_H

#include <sys/types.h>

struct wait {
    const char *call; /* "futex", "read", …; "runs" if the thread is in no call; NULL: not known */
    int number;       /* number of the system call; -1: not known, or the thread is in no call */
    int fd;           /* -1: the call uses none */
};

/* Finds out what a thread waits in. Without permission, or when the thread is gone, `call` is NULL and the numbers are
 * -1. */
void wait_look(struct wait *wait, pid_t pid, pid_t tid);

#endif
