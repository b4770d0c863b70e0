/* launch.h — starts a program, and waits for its end.
 * In: a command and its environment. Out: how it ended. The program gets exactly the signal mask, dispositions, limits
 * and descriptors that memstow was started with. */
#ifndef MEMSTOW_LAUNCH_H
#define MEMSTOW_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch {
    pid_t pid;
    sigset_t outer_mask; /* memstow's signal mask before the start */
    struct sigaction outer_child_action, outer_pipe_action;
    bool adopts; /* wait for all children, including adopted ones */
    bool ended;
    int status;          /* from waitpid, after the end */
    uint64_t elapsed_ns; /* how long the program ran; while it runs: the time when it was started */
};

/* Starts the program. `prepare` runs in the child just before exec, with `context`. Returns 0, or the errno of fork or
 * exec. */
int launch_start(struct launch *launch, char **argv, void (*prepare)(void *context), void *context);
/* Waits for the program's end, for the end of any child, for a signal, or for `timeout_ns` (UINT64_MAX: without limit).
 * While the program runs, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to it. Returns the number of the signal,
 * or 0. */
int launch_next(struct launch *launch, uint64_t timeout_ns);
/* Waits for the program's end. Calls `tick` (may be NULL) about twice a second. */
void launch_wait(struct launch *launch, void (*tick)(void *context), void *context);
/* A `prepare` for launch_start: sends the program's output to standard error. */
void launch_say_to_stderr(void *context);
/* Undoes what launch_start changed in this process's handling of signals. Call it before another program is started. */
void launch_forget(const struct launch *launch);
/* The exit code as a shell shows it. */
int launch_exit_code(const struct launch *launch);

#endif
