/* check_launch.c — starts the command of a check, and waits for it; see check.h. A signal to the check ends the whole
 * check, not only the program that is running. The check must note the signal itself, because the program's exit status
 * may not show it: a server may exit with 0 after a signal. */
#include "tools/check/check.h"
#include "tools/base/complain.h"
#include "tools/launch/launch.h"

#include <signal.h>
#include <string.h>

static const int ending[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
static volatile sig_atomic_t interrupted;

static void interrupt_note(int signal) { interrupted = signal; }

static bool ends_us(int signal) {
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (signal == ending[i]) return true;
    return false;
}

/* Sets interrupt_note for each signal of `ending` that `handler` handles now. When such a signal comes for the first
 * time, interrupt_note runs. When the same signal comes again, it ends the check at once. */
static void note_signals(void (*handler)(int), int flags) {
    const struct sigaction noted = {.sa_handler = interrupt_note, .sa_flags = flags | SA_RESETHAND};
    struct sigaction was;
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        if (sigaction(ending[i], NULL, &was) == 0 && was.sa_handler == handler) sigaction(ending[i], &noted, NULL);
}

/* Begins to handle signals. Signals that are ignored, as under nohup, stay ignored, also in the programs that the check
 * starts. */
void check_launch_begin(void) { note_signals(SIG_DFL, SA_RESTART); }

void check_launch_end(void) { note_signals(interrupt_note, 0); }

bool check_is_interrupted(void) { return interrupted; }

int check_interrupted(void) {
    if (!interrupted) return EXIT_FINE;
    complain("ended by signal %d: there is no verdict", (int)interrupted);
    return 128 + interrupted;
}

int check_launch(char **argv, const char *name, int *status) {
    struct launch launch = {0};
    if (interrupted) return check_interrupted();
    int error = launch_start(&launch, argv, launch_say_to_stderr, NULL);
    while (!error && !launch.ended) {
        int signal = launch_next(&launch, UINT64_MAX);
        if (ends_us(signal)) interrupted = signal;
    }
    launch_forget(&launch);
    if (error) complain("%s: %s", name, strerror(error));
    *status = error ? EXIT_PROGRAM : launch_exit_code(&launch);
    return check_interrupted();
}
