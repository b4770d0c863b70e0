/* The line of progress appears only on a terminal, and only after a second. It is removed before anything else is
 * printed. */
#include "tools/base/complain.h"
#include "tools/base/progress.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What was written to the terminal up to now. */
static const char *written(int terminal) {
    static char text[4096];
    size_t used = 0;
    struct pollfd poller = {.fd = terminal, .events = POLLIN};
    while (used + 1 < sizeof text && poll(&poller, 1, 50) == 1) {
        ssize_t got = read(terminal, text + used, sizeof text - 1 - used);
        if (got <= 0) break;
        used += (size_t)got;
    }
    text[used] = 0;
    return text;
}

/* Says something every tenth of a second. */
static void work(int tenths) {
    const struct timespec tenth = {.tv_nsec = 100000000};
    for (int i = 0; i < tenths; i++) {
        progress_say("looking at %s", "libexample.so");
        nanosleep(&tenth, NULL);
    }
}

static int terminal_as_stderr(void) {
    int terminal, end;
    cr_assert_eq(openpty(&terminal, &end, NULL, NULL, NULL), 0, "no pseudo terminal: %s", strerror(errno));
    dup2(end, STDERR_FILENO);
    close(end);
    return terminal;
}

Test(progress, is_shown_after_a_second) {
    int terminal = terminal_as_stderr();
    progress_begin();
    work(5);
    cr_expect_str_eq(written(terminal), "");
    work(12);
    const char *text = written(terminal);
    cr_expect(strstr(text, "looking at libexample.so (1 s)") || strstr(text, "looking at libexample.so (2 s)"), "%s",
              text);
    complain("a complaint");
    progress_end();
    text = written(terminal);
    cr_expect(strncmp(text, "\r\033[Kmemstow: a complaint", 24) == 0, "%s", text);
    cr_assert(strchr(text, '\n'), "%s", text);
    const char *shown = NULL; /* the line may have come back before the end */
    for (const char *at = text; (at = strstr(at, " s)")); at++) shown = at;
    cr_expect_str_eq(shown ? shown + 3 : strchr(text, '\n') + 1, shown ? "\r\033[K" : "", "the line is removed once");
}

/* A long step calls nothing of progress.h while it lasts, and the line is shown nevertheless. After a complaint, the
 * line comes back below the complaint. */
Test(progress, is_shown_during_a_long_step) {
    const struct timespec step = {.tv_sec = 1, .tv_nsec = 600000000};
    int terminal = terminal_as_stderr();
    progress_begin();
    progress_say("reading %s", "large.mst");
    nanosleep(&step, NULL);
    const char *text = written(terminal);
    cr_expect(strstr(text, "reading large.mst (1 s)") || strstr(text, "reading large.mst (2 s)"), "%s", text);
    complain("a complaint");
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    text = strstr(written(terminal), "memstow: a complaint\r\n");
    cr_expect(text && strstr(text, "\r\033[Kreading large.mst"), "%s", text);
    progress_hide();
    written(terminal);
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    cr_expect_str_eq(written(terminal), "", "it is hidden");
    progress_end();
}

/* A forked child shows nothing, and its complaint does not wait for the parent's line. */
Test(progress, is_not_in_a_child) {
    int terminal = terminal_as_stderr();
    progress_begin();
    progress_say("reading %s", "large.mst");
    pid_t child = fork();
    if (!child) {
        work(15);
        progress_end();
        _exit(0);
    }
    progress_end();
    waitpid(child, NULL, 0);
    cr_expect_str_eq(written(terminal), "", "the child says nothing");
}

Test(progress, is_for_terminals_only) {
    int ends[2];
    char byte;
    cr_assert_eq(pipe2(ends, O_NONBLOCK), 0);
    dup2(ends[1], STDERR_FILENO);
    progress_begin();
    work(15);
    progress_end();
    cr_expect(read(ends[0], &byte, 1) == -1 && errno == EAGAIN);
}

/* Before progress_begin and after progress_end no line of progress is shown, because other commands print while they
 * look up names. */
Test(progress, is_between_begin_and_end) {
    int terminal = terminal_as_stderr();
    work(15);
    cr_expect_str_eq(written(terminal), "", "it has not begun");
    progress_begin();
    progress_end();
    work(15);
    cr_expect_str_eq(written(terminal), "", "it is over");
}
