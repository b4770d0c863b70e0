/* launch.c — see launch.h. There are no signal handlers: memstow blocks the signals of waited_signals(), and waits for
 * them. Before exec, the child gets back the mask that memstow was started with. */
#include "tools/launch/launch.h"
#include "tools/base/duration.h"
#include "tools/launch/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NS = 500000000 };

/* The signals that memstow waits for. The signal of Ctrl-Z is not among them. The terminal sends it to both memstow and
 * the program, because both are in the terminal's foreground group. So both stop and continue together. */
static void waited_signals(sigset_t *set) {
    static const int signals[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(set, signals[i]);
}

static void run_child(const struct launch *launch, char **argv, void (*prepare)(void *), void *context, int report) {
    prepare(context);
    launch_forget(launch);
    file_limit_restore();
    execvp(argv[0], argv);
    int error = errno;
    ssize_t written = write(report, &error, sizeof error);
    (void)written;
    _exit(127);
}

/* Returns the errno of the child's exec, or 0 if the exec succeeded, and so closed the pipe. */
static int exec_error(int report) {
    int error = 0;
    ssize_t got;
    do got = read(report, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    return got == sizeof error ? error : 0;
}

int launch_start(struct launch *launch, char **argv, void (*prepare)(void *context), void *context) {
    int report[2];
    sigset_t set;
    /* The parent may have left SIGCHLD ignored. Then the kernel would drop the exit status. */
    struct sigaction usual = {.sa_handler = SIG_DFL}, ignored = {.sa_handler = SIG_IGN};
    if (pipe2(report, O_CLOEXEC) < 0) return errno;
    waited_signals(&set);
    sigaction(SIGCHLD, &usual, &launch->outer_child_action);
    /* If the reader of memstow's output is gone, memstow must still follow the program, and return its exit code. */
    sigaction(SIGPIPE, &ignored, &launch->outer_pipe_action);
    sigprocmask(SIG_BLOCK, &set, &launch->outer_mask);
    launch->elapsed_ns = duration_now(); /* the start time, until the program has ended */
    launch->pid = fork();
    if (launch->pid == 0) run_child(launch, argv, prepare, context, report[1]);
    int error = launch->pid < 0 ? errno : 0;
    close(report[1]);
    if (!error) error = exec_error(report[0]);
    close(report[0]);
    if (error && launch->pid > 0) waitpid(launch->pid, NULL, 0);
    return error;
}

static void take_end(struct launch *launch, int status) {
    launch->ended = true;
    launch->status = status;
    launch->elapsed_ns = duration_now() - launch->elapsed_ns;
}

/* Takes the exit status of the program if it has ended. If launch->adopts is true, reaps all other children that have
 * ended, too. Otherwise they are left alone: this process may have had them before it became memstow by exec. */
static void look_for_ends(struct launch *launch) {
    int status = 0;
    if (!launch->ended) {
        pid_t got = waitpid(launch->pid, &status, WNOHANG);
        if (got == launch->pid || (got < 0 && errno == ECHILD)) take_end(launch, status);
    }
    for (pid_t got = 1; launch->adopts && got > 0;) {
        siginfo_t info = {0};
        /* If the program itself has ended after the check above, the next call of look_for_ends takes its status. */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid) return;
        if (info.si_pid == launch->pid && !launch->ended) return;
        got = waitpid(info.si_pid, NULL, WNOHANG);
    }
}

/* Whether memstow passes the signal on to the program. It does not pass on SIGINT and SIGQUIT, because the terminal
 * sends them to the program itself, too. */
static bool is_passed_on(int signal) {
    return signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1 || signal == SIGUSR2;
}

int launch_next(struct launch *launch, uint64_t timeout_ns) {
    sigset_t set;
    siginfo_t info;
    struct timespec pause = {(time_t)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000)};
    waited_signals(&set);
    look_for_ends(launch);
    if (launch->ended && !launch->adopts) return 0;
    int signal = timeout_ns == UINT64_MAX ? sigwaitinfo(&set, &info) : sigtimedwait(&set, &info, &pause);
    if (signal > 0 && is_passed_on(signal) && !launch->ended) kill(launch->pid, signal);
    look_for_ends(launch);
    return signal > 0 && signal != SIGCHLD ? signal : 0;
}

void launch_wait(struct launch *launch, void (*tick)(void *context), void *context) {
    while (!launch->ended) {
        uint64_t before = duration_now();
        launch_next(launch, tick ? TICK_NS : UINT64_MAX);
        if (tick && !launch->ended && duration_now() - before >= TICK_NS) tick(context);
    }
}

void launch_forget(const struct launch *launch) {
    sigaction(SIGCHLD, &launch->outer_child_action, NULL);
    sigaction(SIGPIPE, &launch->outer_pipe_action, NULL);
    sigprocmask(SIG_SETMASK, &launch->outer_mask, NULL);
}

void launch_say_to_stderr(void *context) {
    (void)context;
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

int launch_exit_code(const struct launch *launch) {
    return WIFSIGNALED(launch->status) ? 128 + WTERMSIG(launch->status) : WEXITSTATUS(launch->status);
}
