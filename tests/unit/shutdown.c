/* One ending is cancelled, and at that very moment another ending begins, for example by a signal. Each ending has its
 * own time limit, and a thread that watches this limit. In these tests the watching threads do not run. Instead, the
 * test calls a thread's function when it wants to. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "preload/shutdown/shutdown.h"
#include "preload/stow/stow_thread.h"

enum { LONG_S = 60, FORCED = 3 };

struct stow_thread {
    void (*work)(void *context);
    void *context;
    bool joined;
};
static struct stow_thread threads[4];
static int started;
static bool guards_begin, signal_comes, called_off_early;

static void begin_another(void);

/* A double of the function that starts threads. During begin() it stores the thread that would watch an ending's
 * limit, and does not run it. At other times it returns NULL, as if no thread could be started. */
struct stow_thread *stow_thread_start(void (*work)(void *context), void *context, bool *own_files) {
    (void)own_files;
    if (!guards_begin) return NULL;
    struct stow_thread *thread = &threads[started++];
    *thread = (struct stow_thread){work, context, false};
    if (called_off_early) begin_another();
    return thread;
}
struct stow_thread *stow_thread_start_apart(void (*work)(void *context), void *context) {
    return (void)work, (void)context, NULL;
}
uint32_t stow_thread_id(const struct stow_thread *self) { return (void)self, 1; }

static int begin(const char *reason, uint64_t limit_ns, int status) {
    guards_begin = true;
    int result = shutdown_begin(reason, limit_ns, status);
    guards_begin = false;
    return result;
}

/* A double of the function that waits for a thread. shutdown_end(true) cancels the first ending, and then waits here
 * for the thread that watches the first ending's limit. That thread has not yet seen that the ending is over. If
 * `signal_comes` is set, a signal begins the second ending during this wait, with a limit of 0. */
void stow_thread_join(struct stow_thread *self) {
    self->joined = true;
    if (!signal_comes) return;
    signal_comes = false;
    begin("a signal", 0, FORCED);
}

/* The first ending is cancelled, and another one begins. At that moment the thread that began the first ending has not
 * yet noted which thread watches the first ending's limit. */
static void begin_another(void) {
    called_off_early = guards_begin = false;
    shutdown_end(true);
    begin("another", LONG_S * UINT64_C(1000000000), 1);
}

/* For a child process, which a limit may end. */
#define MUST(condition)                                                                                                \
    if (!(condition)) _exit(100 + __LINE__ % 100)

static void call_off_and_begin(void) {
    shutdown_check_process();
    MUST(begin("closed", LONG_S * UINT64_C(1000000000), 1) == 0);
    signal_comes = true;
    MUST(shutdown_end(true) >= 0);
    MUST(started == 2 && threads[0].joined && !threads[1].joined);
}

/* The thread that watches the first ending's limit looks at the endings only now, after the first ending is over. */
static void look_first(void) {
    call_off_and_begin();
    threads[0].work(threads[0].context);
}

static void look_second(void) {
    call_off_and_begin();
    threads[1].work(threads[1].context);
}

static void call_both_off(void) {
    call_off_and_begin();
    MUST(shutdown_end(true) >= 0 && threads[1].joined);
    threads[1].work(threads[1].context);
}

static void call_off_early(void) {
    shutdown_check_process();
    called_off_early = true;
    MUST(begin("closed", LONG_S * UINT64_C(1000000000), 1) == 0);
    MUST(started == 2 && threads[0].joined && !threads[1].joined);
    MUST(shutdown_end(true) >= 0 && threads[1].joined);
}

static int status_of(void (*run)(void)) {
    int status = 0;
    pid_t child = fork();
    if (!child) {
        alarm(30);
        run();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(shutdown, a_guard_that_was_called_off_is_not_the_next_ones) { cr_assert_eq(status_of(look_first), 0); }

Test(shutdown, the_next_guard_ends_the_process) { cr_assert_eq(status_of(look_second), FORCED); }

Test(shutdown, the_next_ending_can_be_called_off) { cr_assert_eq(status_of(call_both_off), 0); }

Test(shutdown, a_guard_without_a_place_is_waited_for) { cr_assert_eq(status_of(call_off_early), 0); }
