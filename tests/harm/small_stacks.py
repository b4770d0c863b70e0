"""Threads with the smallest allowed stack allocate for the first time, then fork and exit: memstow's functions fit on
that stack. Such a thread also replaces the program by another one, with thousands of environment variables."""
import support

program = support.compile(r'''
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *way) {
    void *volatile p = malloc(100), *volatile q = aligned_alloc(4096, 70000);
    p = realloc(p, 100000);
    munmap(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    if (way) {
        pid_t child = fork();
        if (!child) {
            free(p);
            p = malloc(10);
            _exit(5);
        }
        int status;
        waitpid(child, &status, 0);
        if (WEXITSTATUS(status) != 5) abort();
    }
    free(p), free(q);
    return 0;
}
int main(void) {
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    for (long way = 0; way < 2; way++)
        pthread_create(&thread, &small, work, (void *)way), pthread_join(thread, 0);
    return 3;
}
''', "small", flags=("-w", "-O1", "-pthread", "-fno-builtin"))
support.run(program, status=3)
support.track(program, status=3)
report = support.report()
module = [m for m in report["modules"] if m["module"] == str(program)]
assert not module or module[0]["live_bytes"] == 0, module

program = support.compile(r'''
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *replace(void *unused) {
    execl("/nowhere/absent", "absent", (char *)0);
    execl("/usr/bin/env", "env", (char *)0);
    return unused;
}
int main(void) {
    static char variables[5000][32];
    pthread_attr_t small;
    pthread_t thread;
    for (int i = 0; i < 5000; i++) {
        sprintf(variables[i], "VARIABLE_%d=%d", i, i);
        putenv(variables[i]);
    }
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
    pthread_create(&thread, &small, replace, 0);
    pthread_join(thread, 0);
    return 1;
}
''', "small_exec", flags=("-w", "-O1", "-pthread"))
alone, tracked = (sorted(line for line in done.stdout.splitlines() if line.startswith("VARIABLE_"))
                  for done in (support.run(program), support.track(program)))
assert len(alone) == 5000 and tracked == alone, tracked
process = support.report()["process"]
assert (process["name"], process["exec_generation"]) == ("env", 1), process
