/* ending.h — ends processes: SIGTERM, a while to go, SIGKILL.
 * In: processes by pid and start. Out: how each ended. A pid that is another process's by now is never touched: for
 * each signal the process is held by a pidfd before its start is looked at, and signalled by that alone. One descriptor
 * at a time, however many processes there are. */
#ifndef MEMSTOW_ENDING_H
#define MEMSTOW_ENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ending_result {
    ENDING_GONE,       /* it was gone before, or the pid is another's */
    ENDING_TERMINATED, /* after SIGTERM */
    ENDING_KILLED,
    ENDING_REFUSED, /* not ours to signal */
    ENDING_STILL,   /* the kernel has not let it go: it is in a system call that nothing interrupts */
    ENDING_FAILED,  /* it cannot be signalled safely: no pidfd here, or no descriptor left */
};

struct ending {
    pid_t pid;
    uint64_t start_ticks;
    enum ending_result result;
};

/* All at once: SIGTERM to each, and SIGCONT to who is stopped and could not heed it; then at most `patience_ns`, then
 * SIGKILL to who is still there. `wait` is called while waiting, for who is their parent and has to reap them; true:
 * SIGKILL at once. NULL: nobody. */
void ending_all(struct ending *list, size_t count, uint64_t patience_ns, bool (*wait)(void *context), void *context);
const char *ending_words(enum ending_result result);

#endif
