// Helpers of the tools for endings: lengths of time, positions in a text, addresses of sockets, and membership in a
// family of processes.
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/duration.h"
#include "tools/watch/ending.h"
#include "tools/watch/family.h"
#include "tools/proc/holdings.h"
#include "tools/base/position.h"
#include "tools/proc/process.h"

Test(endings, durations) {
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"0", 0},
                {"60s", 60 * SECOND_NS},
                {"500ms", SECOND_NS / 2},
                {"1.5", SECOND_NS * 3 / 2},
                {"2m", 120 * SECOND_NS},
                {"24h", 86400 * SECOND_NS},
                {"1min", 60 * SECOND_NS}};
    static const char *const bad[] = {"",    "s",  "-1",    "1e3",  "1x",  "25h",
                                      "1 s", ".5", "1.2.3", "0x10", "inf", "1234567890123"};
    uint64_t ns;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert(duration_parse(good[i].text, &ns), "%s", good[i].text);
        cr_assert_eq(ns, good[i].ns, "%s", good[i].text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) cr_assert_not(duration_parse(bad[i], &ns), "%s", bad[i]);
}

Test(endings, positions) {
    struct position position = position_of("ab\ncd", 5, 4);
    cr_assert_eq(position.line, 2);
    cr_assert_eq(position.column, 2);
    position = position_of("", 0, 7);
    cr_assert_eq(position.line, 1);
    cr_assert_eq(position.column, 1);
}

static pid_t sleeper(void) {
    pid_t pid = fork();
    if (pid == 0)
        for (;;) pause();
    return pid;
}

/* A process with the same pid but another start time is another process, so it is left alone. */
Test(endings, a_recycled_pid_is_left_alone) {
    struct process process;
    pid_t pid = sleeper();
    cr_assert_eq(process_look(&process, pid), 0);
    struct ending ending = {.pid = pid, .start_ticks = process.start_ticks - 1};
    ending_all(&ending, 1, SECOND_NS, NULL, NULL);
    cr_assert_eq(ending.result, ENDING_GONE);
    cr_assert_eq(waitpid(pid, NULL, WNOHANG), 0);
    ending.start_ticks = process.start_ticks;
    ending_all(&ending, 1, SECOND_NS, NULL, NULL);
    cr_assert_eq(ending.result, ENDING_TERMINATED);
    waitpid(pid, NULL, 0);
}

Test(endings, a_family_is_what_came_after_its_first) {
    struct family family;
    pid_t earlier = sleeper();
    usleep(50000); /* start times are counted in ticks of 10 ms */
    pid_t main = sleeper();
    family_begin(&family, main, NULL);
    cr_assert_eq(family_look(&family), 0);
    cr_assert_eq(family.here, 1);
    cr_assert_eq(family.members[0].pid, main);
    cr_assert(family.rss > 0 && family.members[0].here);
    kill(main, SIGKILL);
    kill(earlier, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0) continue;
    cr_assert_eq(family_look(&family), 0);
    cr_assert_eq(family.here, 0);
    cr_assert_not(family.members[0].here);
    family_end(&family);
}

Test(endings, what_a_descriptor_is_for) {
    static const struct {
        const char *target;
        enum handle_kind kind;
    } known[] = {{"/dev/nvidia0", HANDLE_GPU},           {"/dev/nvidia-uvm", HANDLE_GPU},
                 {"/dev/dri/renderD128", HANDLE_GPU},    {"/dev/tty", HANDLE_DEVICE},
                 {"/dev/shm/x", HANDLE_SHARED},          {"/memfd:x (deleted)", HANDLE_SHARED},
                 {"socket:[1]", HANDLE_SOCKET},          {"pipe:[1]", HANDLE_PIPE},
                 {"/tmp/x (deleted)", HANDLE_TEMPORARY}, {"/tmp/x (deleted", HANDLE_FILE},
                 {"anon_inode:[eventfd]", HANDLE_OTHER}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        cr_assert_eq(handle_kind_of(known[i].target), known[i].kind, "%s", known[i].target);
}

Test(endings, holdings_of_this_process) {
    struct holdings holdings;
    char path[] = "/tmp/memstow-unit-XXXXXX";
    int fd = mkstemp(path);
    bool found = false;
    cr_assert_eq(ftruncate(fd, 1 << 30), 0);
    cr_assert_neq(mmap(NULL, 1 << 30, PROT_READ, MAP_PRIVATE, fd, 0), MAP_FAILED);
    cr_assert_eq(holdings_load(&holdings, getpid()), 0);
    for (size_t i = 0; i < holdings.handle_count; i++)
        found |= holdings.handles[i].fd == fd && holdings.handles[i].kind == HANDLE_FILE &&
                 !strcmp(holdings.handles[i].what, path);
    cr_assert(found);
    cr_assert(holdings.mapped_count > holdings.code_count && holdings.code_count >= 2); /* libc and this program */
    cr_assert_str_eq(holdings.mapped[0].path, path);                                    /* no other is as large */
    cr_assert_eq(holdings.mapped[0].bytes, 1 << 30);
    cr_assert(holdings.task_count >= 1 && holdings.tasks[0].tid == getpid());
    holdings_clear(&holdings);
    unlink(path);
    cr_assert_eq(holdings_load(&holdings, getpid()), 0);
    cr_assert_eq(holdings.of_kind[HANDLE_TEMPORARY] >= 1, true);
    holdings_clear(&holdings);
    cr_assert_lt(holdings_load(&holdings, 4194303), 0);
    holdings_clear(&holdings);
    close(fd);
}
