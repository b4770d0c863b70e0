/* Which processes are kin: the search for the processes that descend from the program, and the rule by which processes
 * live on with a survivor. The coordinator in Python has to answer the same cases (tests/ends/kin). */
// build: -Wl,--wrap=os_open,--wrap=os_read,--wrap=os_each_name,--wrap=os_pid,--wrap=os_start_ticks,--wrap=os_call6
#include <criterion/criterion.h>
#include <sys/syscall.h>

#include "preload/shutdown/shutdown_processes.c"

#include "kin_system.h"

enum looks { FIRST = 1, SECOND = 2, BOTH = 3 };
enum result { NO, YES, SURVIVOR };
enum rule { OF_A_CASE, KIN_RULE, SURVIVORS_RULE }; /* OF_A_CASE: a process, not the beginning of a case */

/* A line of the table. At the beginning of a case the numbers are the program's. */
static const struct kin_line {
    const char *begins;
    enum rule rule;
    struct one process;
    enum looks looks;
    enum result result;
} lines[] = {
#define KIN(name, ...) {name, KIN_RULE, {SELF, __VA_ARGS__, START}, BOTH, NO},
#define SURVIVORS(name, ...) {name, SURVIVORS_RULE, {SELF, __VA_ARGS__, START}, BOTH, NO},
#define PROCESS(pid, parent, group, session, start, looks, result)                                                     \
    {NULL, OF_A_CASE, {pid, parent, group, session, start}, looks, result},
#include "kin_cases.h"
};
enum { LINES = sizeof lines / sizeof *lines };

uint64_t __wrap_os_start_ticks(uint32_t pid);
uint64_t __wrap_os_start_ticks(uint32_t pid) {
    int place = place_in_all(pid);
    return place < 0 ? 0 : all[place].start;
}

long __real_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f);
long __wrap_os_call6(long number, long a, long b, long c, long d, long e, long f) {
    if (number == SYS_getpgid && !a) return all[0].group;
    if (number == SYS_getsid && !a) return all[0].session;
    return __real_os_call6(number, a, b, c, d, e, f);
}

/* The line behind the case that begins at `from`. */
static int case_end(int from) {
    int end = from + 1;
    while (end < LINES && !lines[end].begins) end++;
    return end;
}

static void system_at(int from, enum looks look) {
    all[0] = lines[from].process;
    all_count = 1;
    for (int at = from + 1; at < case_end(from); at++)
        if (lines[at].looks & look) all[all_count++] = lines[at].process;
}

static bool visited[1 << 16];

static void visit(void *context, const struct shutdown_relative *relative) {
    (void)context;
    visited[relative->pid] = true;
}

static void judge_kin(int from, enum looks look) {
    system_at(from, look);
    memset(visited, 0, sizeof visited);
    cr_assert_eq(shutdown_kin_look(NULL, 0, visit, NULL), 0);
    for (int at = from + 1; at < case_end(from); at++) {
        const struct kin_line *line = &lines[at];
        if (line->looks & look)
            cr_expect_eq(visited[line->process.pid], line->result == YES, "%s: %u in look %d", lines[from].begins,
                         line->process.pid, look);
    }
}

static void judge_spared(int from) {
    static struct end end;
    end.survivor_count = 0;
    for (int at = from + 1; at < case_end(from); at++)
        if (lines[at].result == SURVIVOR)
            end.survivors[end.survivor_count++] =
                (struct child){.pid = lines[at].process.pid, .start_ticks = lines[at].process.start};
    system_at(from, SECOND);
    for (int at = from + 1; at < case_end(from); at++) {
        uint32_t pid = lines[at].process.pid;
        if (lines[at].looks & SECOND)
            cr_expect_eq(is_survivor(&end, pid), lines[at].result != NO, "%s: %u", lines[from].begins, pid);
    }
}

Test(kin, the_cases_are_answered) {
    for (int at = 0; at < LINES; at = case_end(at)) {
        begin();
        if (lines[at].rule == SURVIVORS_RULE) judge_spared(at);
        if (lines[at].rule == KIN_RULE) judge_kin(at, FIRST), judge_kin(at, SECOND);
    }
}
