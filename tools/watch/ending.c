/* ending.c — see ending.h. */
#include "tools/watch/ending.h"
#include "tools/base/duration.h"
#include "tools/proc/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEP_MS = 50, KILL_PATIENCE_S = 5 };

const char *ending_words(enum ending_result result) {
    static const char *const words[] = {"was gone already",
                                        "ended on SIGTERM",
                                        "ended on SIGKILL",
                                        "may not be signalled by you",
                                        "does not end, not even on SIGKILL",
                                        "cannot be signalled here"};
    return words[result];
}

static bool ending_is_there(const struct ending *ending, struct process *process) {
    return process_look(process, ending->pid) == 0 && process->start_ticks == ending->start_ticks &&
           process_is_alive(process->state, process->threads);
}

static bool signal_held(struct ending *ending, int pidfd, int signal) {
    if (syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0) return true;
    if (errno == EPERM) ending->result = ENDING_REFUSED;
    if (errno != EPERM && errno != ESRCH) ending->result = ENDING_FAILED;
    return false;
}

/* Sends a signal through a pidfd. The pidfd is opened before the process is checked. So the signal cannot reach another
 * process that gets the same pid after the check. `gone`: the result if the process does not exist. */
static void ending_send(struct ending *ending, int signal, enum ending_result gone) {
    struct process process;
    int pidfd = (int)syscall(SYS_pidfd_open, ending->pid, 0);
    if (pidfd < 0) {
        ending->result = errno == ESRCH ? gone : ENDING_FAILED;
        return;
    }
    if (!ending_is_there(ending, &process))
        ending->result = gone;
    else if (signal_held(ending, pidfd, signal) && signal == SIGTERM && process.state == 'T')
        signal_held(ending, pidfd, SIGCONT);
    close(pidfd);
}

/* Sets the result `how` for processes that are gone now. True: some processes are still there. */
static bool endings_look(struct ending *list, size_t count, enum ending_result how) {
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        struct process process;
        if (list[i].result != ENDING_STILL) continue;
        if (ending_is_there(&list[i], &process))
            some = true;
        else
            list[i].result = how;
    }
    return some;
}

static void ending_await(struct ending *list, size_t count, enum ending_result how, uint64_t patience_ns,
                         bool (*wait)(void *context), void *context) {
    uint64_t end = duration_now() + patience_ns;
    for (;;) {
        bool hurry = wait && wait(context);
        if (!endings_look(list, count, how) || duration_now() >= end) return;
        if (hurry && how == ENDING_TERMINATED) return;
        poll(NULL, 0, STEP_MS);
    }
}

static void send_all(struct ending *list, size_t count, int signal, enum ending_result gone) {
    for (size_t i = 0; i < count; i++)
        if (list[i].result == ENDING_STILL) ending_send(&list[i], signal, gone);
}

void ending_all(struct ending *list, size_t count, uint64_t patience_ns, bool (*wait)(void *context), void *context) {
    for (size_t i = 0; i < count; i++) list[i].result = ENDING_STILL;
    send_all(list, count, SIGTERM, ENDING_GONE);
    ending_await(list, count, ENDING_TERMINATED, patience_ns, wait, context);
    send_all(list, count, SIGKILL, ENDING_TERMINATED);
    ending_await(list, count, ENDING_KILLED, KILL_PATIENCE_S * SECOND_NS, wait, context);
}
