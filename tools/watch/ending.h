/* ending.h — ends processes: SIGTERM, then a wait, then SIGKILL.
 * In: processes by pid and start time. Out: how each process ended. It never signals another process that got the pid:
 * for each signal it opens a pidfd, then checks the start time, and signals through the pidfd. It uses one descriptor
 * at a time, however many processes there are. */
#ifndef MEMSTOW_ENDING_H
#define MEMSTOW_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ending_result {
    ENDING_GONE,       /* the process was gone before the first signal, or its pid belongs to another process */
    ENDING_TERMINATED, /* it ended after SIGTERM */
    ENDING_KILLED,
    ENDING_REFUSED, /* this user lacks the permission to signal it */
    ENDING_STILL,   /* it still exists: it is in a system call that nothing interrupts */
    ENDING_FAILED,  /* it cannot be signalled safely: no pidfd on this system, or no free descriptor */
};

struct ending {
    pid_t pid;
    uint64_t start_ticks;
    enum ending_result result;
};

/* Ends all processes of the list together. SIGTERM goes to each process, and SIGCONT to stopped processes, which could
 * not react otherwise. After at most `patience_ns`, SIGKILL goes to those that are still there. Meanwhile `wait` (may
 * be NULL) is called again and again, for a parent that must reap the processes. If `wait` returns true, SIGKILL goes
 * out at once. */
void ending_all(struct ending *list, size_t count, uint64_t patience_ns, bool (*wait)(void *context), void *context);
const char *ending_words(enum ending_result result);

#endif
