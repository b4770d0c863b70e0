// Temporary files that a program leaves behind are still found after a long run in which many others came and went.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/watch/traces.h"

enum { AT_A_TIME = 128 };
static struct member self = {.here = true, .name = "traces"};
static struct family family = {.members = &self, .count = 1};

static void look_at_some(struct traces *traces, bool stay) {
    char paths[AT_A_TIME][40];
    int fds[AT_A_TIME];
    for (int i = 0; i < AT_A_TIME; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/memstow-left-XXXXXX");
        cr_assert((fds[i] = mkstemp(paths[i])) >= 0);
    }
    traces_note(traces, &family);
    for (int i = 0; i < AT_A_TIME; i++) {
        close(fds[i]);
        if (!stay) unlink(paths[i]);
    }
}

static void remove_all(struct traces *traces) {
    for (size_t i = 0; i < traces->count; i++)
        if (traces->list[i].left) unlink(traces->list[i].path);
    traces_end(traces);
}

Test(traces, are_followed_after_many_that_went) {
    struct traces traces;
    self.pid = getpid();
    traces_begin(&traces, NULL);
    for (int made = 0; made <= TRACES_MOST; made += AT_A_TIME) look_at_some(&traces, false);
    look_at_some(&traces, true);
    traces_settle(&traces, &family);
    cr_expect_eq(traces.left, AT_A_TIME, "%zu are left", traces.left);
    cr_expect_not(traces.missed);
    remove_all(&traces);
}

Test(traces, say_when_there_were_too_many_at_a_time) {
    struct traces traces;
    self.pid = getpid();
    traces_begin(&traces, NULL);
    for (int made = 0; made < TRACES_MOST; made += AT_A_TIME) look_at_some(&traces, true);
    cr_expect_not(traces.missed);
    char path[] = "/tmp/memstow-left-XXXXXX";
    cr_assert(mkstemp(path) >= 0);
    traces_note(&traces, &family);
    unlink(path);
    traces_settle(&traces, &family);
    cr_expect(traces.missed);
    cr_expect_eq(traces.left, TRACES_MOST, "%zu are left", traces.left);
    remove_all(&traces);
}

static pid_t sleeper(void) {
    pid_t pid = fork();
    if (pid == 0)
        for (;;) pause();
    return pid;
}

/* A temporary file is needed as long as a process that lives on has it open. A process that has ended does not need the
 * file, even if it made the file. */
Test(traces, are_needed_by_who_lives_on_alone) {
    struct traces traces;
    char path[] = "/tmp/memstow-left-XXXXXX";
    traces_begin(&traces, NULL);
    int fd = mkstemp(path);
    struct member members[2] = {{.pid = sleeper(), .here = true, .name = "first"}, {.pid = sleeper(), .name = "kept"}};
    struct family two = {.members = members, .count = 2, .stays = 1};
    close(fd);
    traces_note(&traces, &two);
    members[0].here = false, members[0].exempt = members[1].exempt = members[1].stays = true;
    traces_settle(&traces, &two);
    cr_expect_eq(traces.left, 0);
    kill(members[1].pid, SIGKILL);
    waitpid(members[1].pid, NULL, 0);
    members[1].stays = false, two.stays = 0;
    traces_settle(&traces, &two);
    cr_expect_eq(traces.left, 1);
    kill(members[0].pid, SIGKILL);
    waitpid(members[0].pid, NULL, 0);
    remove_all(&traces);
}
