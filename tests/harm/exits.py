"""Whichever way a program ends, it ends with the same status as without memstow, and its ledger says as much about the
end as can be known."""
import sys

import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
static const char *how;
static volatile char *nowhere;
static void leave(int number) {
    (void)number;
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "_exit")) _exit(4);
    if (!strcmp(how, "_Exit")) _Exit(5);
    if (!strcmp(how, "quick_exit")) quick_exit(6);
    if (!strcmp(how, "syscall")) syscall(SYS_exit_group, 7);
    if (!strcmp(how, "raw")) __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(8) : "rcx", "r11", "memory");
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) *nowhere = 1;
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "kill")) raise(SIGKILL);
}
static void *thread(void *unused) {
    void *p = malloc(1234);
    leave(0);
    return p ? unused : 0;
}
static void *busy(void *unused) {
    for (;;)
        free(malloc(100));
    return unused;
}
static void at_exit(void) { free(malloc(50)); }
/* a handler on a stack of the traditional size, which has no room for much */
static void small_stack(void) {
    static char stack[8192];
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK};
    sigaltstack(&alternative, 0);
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
}
int main(int count, char **arguments) {
    struct rlimit none = {0, 0};
    pthread_t id;
    setrlimit(RLIMIT_CORE, &none);
    how = arguments[1];
    atexit(at_exit);
    void *volatile p = malloc(1000000);
    puts("here");
    fflush(stdout);
    if (!strcmp(arguments[2], "main")) leave(0);
    if (!strcmp(arguments[2], "busy")) {
        for (int i = 0; i < 3; i++) pthread_create(&id, 0, busy, 0);
        usleep(20000);
        leave(0);
    }
    if (!strcmp(arguments[2], "thread")) pthread_create(&id, 0, thread, 0), pthread_join(id, 0);
    if (!strcmp(arguments[2], "handler")) small_stack();
    if (!strcmp(arguments[2], "pthread_exit")) pthread_create(&id, 0, thread, 0), pthread_exit(0);
    return 60;
}
''', "leave", flags=("-w", "-O1", "-pthread", "-fno-builtin"))
STATES = {"exit": "exited", "_exit": "abrupt_exit", "_Exit": "abrupt_exit", "quick_exit": "abrupt_exit",
          "syscall": "abrupt_exit", "raw": "raw_exit", "abort": "killed", "segv": "killed", "term": "killed",
          "kill": "killed"}
wrong = []
for how, state in STATES.items():
    for where in "main thread handler busy pthread_exit".split():
        if where == "handler" and how == "exit":
            continue # exit() in a signal handler is the program's own risk
        file = f"{how}-{where}.mst"
        alone = support.run(program, how, where, status=None)
        tracked = support.track(program, how, where, status=None, file=file)
        status = alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
        if (tracked.returncode, tracked.stdout) != (status, alone.stdout):
            wrong.append(f"{how} in {where}: status {tracked.returncode} instead of {status}, {tracked.stderr}")
            continue
        report = support.report(file)
        live = report["totals"]["host"]["live_bytes"]
        if live < 1000000:
            wrong.append(f"{how} in {where}: {live} bytes")
        if report["process"]["state"] != state:
            wrong.append(f"{how} in {where}: state {report['process']['state']}, not {state}")
    print(how, report["process"]["state"])
support.track(sys.executable, "-c", "import os; b = bytes(5000000); os._exit(8)", status=8, file="python.mst")
assert support.report("python.mst")["totals"]["live_bytes"] > 5000000
assert not wrong, "\n".join(wrong)
