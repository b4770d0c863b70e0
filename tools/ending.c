/* ending.c — ends processes; see ending.h. */
#include "ending.h"
#include "duration.h"
#include "proc.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STEP_MS = 50, KILL_PATIENCE_S = 5 };

const char *ending_words(enum ending_result result) {
    static const char *const words[] = {"was gone already", "ended on SIGTERM", "ended on SIGKILL",
                                        "may not be signalled by you", "does not end, not even on SIGKILL"};
    return words[result];
}

/* First the hold, then the look: what the hold is on cannot change any more. */
static void hold(struct ending *ending) {
    struct process process;
    ending->result = ENDING_GONE;
    ending->pidfd = (int)syscall(SYS_pidfd_open, ending->pid, 0);
    if (ending->pidfd < 0) return;
    if (process_look(&process, ending->pid) == 0 && process.start_ticks == ending->start_ticks &&
        process.state != 'Z' && process.state != 'X')
        ending->result = ENDING_STILL;
}

static bool is_over(const struct ending *ending) {
    struct pollfd look = {.fd = ending->pidfd, .events = POLLIN};
    return poll(&look, 1, 0) > 0;
}

static void send(struct ending *ending, int signal) {
    if (syscall(SYS_pidfd_send_signal, ending->pidfd, signal, NULL, 0) == 0) return;
    ending->result = errno == ESRCH ? ENDING_GONE : ENDING_REFUSED;
}

/* True when some are still there. */
static bool look(struct ending *list, size_t count, enum ending_result how) {
    bool some = false;
    for (size_t i = 0; i < count; i++) {
        if (list[i].result != ENDING_STILL) continue;
        if (is_over(&list[i]))
            list[i].result = how;
        else
            some = true;
    }
    return some;
}

static void await(struct ending *list, size_t count, enum ending_result how, uint64_t patience_ns,
                  void (*wait)(void *context), void *context) {
    uint64_t end = duration_now() + patience_ns;
    for (;;) {
        if (wait) wait(context);
        if (!look(list, count, how) || duration_now() >= end) return;
        poll(NULL, 0, STEP_MS);
    }
}

static void send_all(struct ending *list, size_t count, int signal) {
    for (size_t i = 0; i < count; i++)
        if (list[i].result == ENDING_STILL) send(&list[i], signal);
}

void ending_all(struct ending *list, size_t count, uint64_t patience_ns, void (*wait)(void *context), void *context) {
    for (size_t i = 0; i < count; i++) hold(&list[i]);
    send_all(list, count, SIGTERM);
    await(list, count, ENDING_TERMINATED, patience_ns, wait, context);
    send_all(list, count, SIGKILL);
    await(list, count, ENDING_KILLED, KILL_PATIENCE_S * SECOND_NS, wait, context);
    for (size_t i = 0; i < count; i++)
        if (list[i].pidfd >= 0) close(list[i].pidfd);
}
