/* observe.c — see observe.h. */
#include "tools/watch/observe.h"
#include "tools/base/duration.h"
#include "tools/watch/ending.h"
#include "tools/proc/python_threads.h"
#include "tools/base/text.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

enum { RUNNING_SHARE = 100, ENDING_SHARE = 10, PATIENCE_S = 5, ROUNDS = 5, EMPTY_LOOKS = 8 };
#define RUNNING_NS SECOND_NS
#define ENDING_NS (SECOND_NS / 4)
/* How long the looks must find no process before the program counts as gone. A single look is not enough, because it
 * may miss a process that keeps forking. */
#define EMPTY_NS (2 * SECOND_NS)

void observe_begin(struct observe *observe, struct launch *launch, char **argv, const struct exempt *exempt) {
    *observe = (struct observe){.launch = launch};
    traces_begin(&observe->traces, argv);
    family_begin(&observe->family, launch->pid, exempt);
    observe_look(observe);
}

void observe_end(struct observe *observe) {
    family_end(&observe->family);
    traces_end(&observe->traces);
}

static bool is_ending(const struct observe *observe) { return observe->asked_ns || observe->ended_ns; }

/* Whether the main thread of a live member has ended, or waits in Python's shutdown for other threads. State Z (zombie)
 * of a live member means that its main thread has ended, and that other threads of it still run. */
static bool is_done(const struct member *member) {
    return member->state == 'Z' || (member->state == 'S' && python_threads_at_end(member->pid));
}

static void note_done(struct family *family) {
    for (size_t i = 0; i < family->count; i++) {
        struct member *member = &family->members[i];
        if (member->here && !member->done_ns && is_done(member)) member->done_ns = family->looked_ns;
    }
}

const struct member *observe_lingerer(const struct observe *observe) {
    const struct family *family = &observe->family;
    const struct member *first = NULL;
    for (size_t i = 0; i < family->count; i++) {
        const struct member *member = &family->members[i];
        if (member->here && member->done_ns && (!first || member->done_ns < first->done_ns)) first = member;
    }
    return first;
}

/* The processor time of this thread. The wall time of a look says little about its cost on a busy machine. */
static uint64_t processor_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void observe_look(struct observe *observe) {
    uint64_t before = processor_now();
    observe->blind = family_look(&observe->family) < 0;
    observe->empty_looks = observe->blind || observe->family.here ? 0 : observe->empty_looks + 1;
    if (observe->empty_looks == 1) observe->empty_ns = observe->family.looked_ns;
    if (!is_ending(observe)) note_done(&observe->family);
    traces_note(&observe->traces, &observe->family);
    uint64_t now = duration_now(), least = is_ending(observe) ? ENDING_NS : RUNNING_NS;
    uint64_t pause = (is_ending(observe) ? ENDING_SHARE : RUNNING_SHARE) * (processor_now() - before);
    observe->soon_ns = now + pause;
    observe->look_ns = now + (pause > least ? pause : least);
}

static void begin_ending(struct observe *observe) {
    observe_look(observe);
    if (!observe->asked_rss) observe->asked_rss = observe->family.rss;
}

void observe_asked(struct observe *observe) {
    if (observe->asked_ns || observe->ended_ns) return;
    observe->asked_ns = duration_now();
    begin_ending(observe);
}

/* Notes a signal that came. True: it asks memstow itself to end. */
static bool note_signal(struct observe *observe, int signal) {
    bool ends = signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (ends) observe->interrupted = signal;
    return ends;
}

int observe_step(struct observe *observe, uint64_t timeout_ns) {
    uint64_t now = duration_now(), until = now + timeout_ns;
    if (until > observe->look_ns) until = observe->look_ns;
    int signal = launch_next(observe->launch, until > now ? until - now : 0);
    note_signal(observe, signal);
    if (observe->launch->ended && !observe->ended_ns) {
        observe->ended_ns = duration_now();
        begin_ending(observe);
    } else if (duration_now() >= (observe->launch->ended ? observe->soon_ns : observe->look_ns))
        observe_look(observe);
    return signal;
}

static bool has_children(void) {
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/* Whether the program and all that it started have ended, except for exempt processes. One look that found no
 * member is not enough, because it may have missed a process that keeps forking and ending. One of these must hold too:
 * - This process has no children. Then nothing is left, because orphans become its children.
 * - Several looks in a row found no member. This is needed if this process still has children that do not count: exempt
 *   processes, or children that it had before it became memstow by exec. */
bool observe_is_over(const struct observe *observe) {
    if (!observe->launch->ended || observe->family.here) return false;
    if (observe->empty_looks >= EMPTY_LOOKS && duration_now() - observe->empty_ns >= EMPTY_NS) return true;
    return !has_children();
}

/* Reaps ended children; ending_all() calls it during its wait. True: a signal has asked memstow itself to end, so the
 * wait is cut short. */
static bool observe_reap(void *context) {
    struct observe *observe = context;
    return note_signal(observe, launch_next(observe->launch, 0));
}

static size_t end_round(struct observe *observe, FILE *to) {
    struct family *family = &observe->family;
    struct ending *list = calloc(family->count + 1, sizeof *list);
    size_t count = 0;
    for (size_t i = 0; list && i < family->count; i++)
        if (family->members[i].here)
            list[count++] =
                (struct ending){.pid = family->members[i].pid, .start_ticks = family->members[i].start_ticks};
    ending_all(list, count, PATIENCE_S * SECOND_NS, observe_reap, observe);
    for (size_t i = 0, k = 0; to && k < count; i++)
        if (family->members[i].here) {
            fprintf(to, "  %s, pid %d: %s\n", text_fit(family->members[i].name, 31).s, (int)list[k].pid,
                    ending_words(list[k].result));
            k++;
        }
    free(list);
    return count;
}

/* Ends all processes, in several rounds, because a process that ends may have started another one meanwhile. */
size_t observe_end_all(struct observe *observe, FILE *to) {
    size_t ended = 0;
    for (int round = 0; round < ROUNDS; round++) {
        observe_look(observe);
        if (!observe->family.here) break;
        ended += end_round(observe, to);
    }
    observe_look(observe);
    return ended;
}
