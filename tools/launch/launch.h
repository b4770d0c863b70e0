/* launch.h — starts the program of `memstow run` or `memstow watch`, and waits until it ends.
 * In: a command and its environment. Out: how it ended. The program gets exactly the signal mask, dispositions,
 * limits and descriptors that memstow was started with. */
#ifndef MEMSTOW_LAUNCH_H
#define MEMSTOW_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch {
    pid_t pid;
    sigset_t outer_mask; /* as it was before */
    struct sigaction outer_child_action, outer_pipe_action;
    bool adopts; /* all children are waited for, also those that were left to us */
    bool ended;
    int status; /* as of waitpid, once it has ended */
    uint64_t elapsed_ns;
};

/* `prepare` runs in the child just before exec. 0, or the errno of fork or exec. */
int launch_start(struct launch *launch, char **argv, void (*prepare)(void *context), void *context);
/* Waits for the program's end, for a signal, which is passed on while the program runs, or for so long at most: the
 * number of the signal, or 0. A child that ends is a reason to come back, too. */
int launch_next(struct launch *launch, uint64_t timeout_ns);
/* Calls `tick` about twice a second when there is one. */
void launch_wait(struct launch *launch, void (*tick)(void *context), void *context);
/* For `prepare`: what the program prints goes to standard error. */
void launch_say_to_stderr(void *context);
/* Gives this process back the signals that launch_start took: for who starts another. */
void launch_forget(const struct launch *launch);
/* The exit code that a shell would show. */
int launch_exit_code(const struct launch *launch);

#endif
