/* waits.h — what a thread waits in: the system call that it is in, in words.
 * In: /proc/PID/task/TID/syscall. Out: the name of the call, and the descriptor that it is about. */
#ifndef MEMSTOW_WAITS_H
#define MEMSTOW_WAITS_H

#include <sys/types.h>

struct wait {
    const char *call; /* "futex", "read", …; "runs" where it is in none; NULL: it cannot be told */
    int number;       /* of a call that has no name here */
    int fd;           /* -1: it is about none */
};

void wait_look(struct wait *wait, pid_t pid, pid_t tid);

#endif
