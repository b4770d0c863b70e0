#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""Memcheck, Helgrind and DRD report no error for a correct program under memstow. They do not complain about memstow's
system calls, about memstow's data that threads share without a lock, or about blocks from allocation functions that
Valgrind does not replace. They still report the error of a program that has one."""
import shutil

import support

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, PAGE = 4096, LARGE = 1 << 20 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *shared;
static int fault;

static void map(size_t size) { munmap(mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size); }

static void deep(int n) { /* on pages of the stack that were never used before */
    volatile char room[3000];
    room[n] = 1;
    if (n) deep(n - 1);
    else map(LARGE);
    room[n] = 2;
}

static void *work(void *argument) {
    for (int i = 0; i < 30; i++) {
        deep(i);
        free(memset(malloc(1000), 1, 1000));
        free(reallocarray(malloc(10), 20, 30));
    }
    pthread_mutex_lock(&lock);
    free(shared);
    shared = calloc(1, 70000);
    pthread_mutex_unlock(&lock);
    if (fault == 'r') shared[0]++;
    return argument;
}

static void handle(int number) {
    (void)number;
    map(PAGE);
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    int status;
    fault = count > 1 ? arguments[1][0] : 0;
    signal(SIGUSR1, handle);
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    raise(SIGUSR1);
    deep(100);
    char *p = aligned_alloc(PAGE, 2 * PAGE);
    if (fault == 'o') p[2 * PAGE] = 1;
    free(p);
    if (!fork()) {
        work(NULL);
        _exit(0);
    }
    wait(&status);
    if (!fork()) {
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    wait(&status);
    free(realloc(shared, LARGE));
    puts("end");
    return 0;
}
"""
if not shutil.which("valgrind"):
    support.skip("needs valgrind")
program = support.compile(PROGRAM, "program", ["-O1", "-g", "-pthread", "-fno-builtin"])
ERRORS = {"memcheck": ("o", "Invalid write"), "helgrind": ("r", "data race"), "drd": ("r", "Conflicting")}
for tool, (fault, said) in ERRORS.items():
    valgrind = ["valgrind", "-q", f"--tool={tool}", "--error-exitcode=9"]
    for options in ([], ["--stacks=none"], ["--allocator=mimalloc"]):
        clean = support.track(*valgrind, program, options=options)
        assert (clean.stdout, clean.stderr) == ("end\n", ""), f"{tool} {options}:\n{clean.stderr[:4000]}"
        report = support.report()
        assert report["totals"]["mapped"]["allocated_bytes"] >= 100 * (1 << 20), (tool, options, report["totals"])
        assert any("Valgrind serves the heap" in note for note in report["process"]["notes"]), report["process"]
    faulty = support.track(*valgrind, program, fault, status=9)
    assert said in faulty.stderr, (tool, faulty)

# DHAT has nothing to say about memstow.
quiet = support.track("valgrind", "-q", "--tool=dhat", "--dhat-out-file=/dev/null", program)
assert (quiet.stdout, quiet.stderr) == ("end\n", ""), quiet

# Tools that leave the heap alone also do so under memstow.
support.track("valgrind", "-q", "--tool=none", program)
report = support.report()
assert not report["process"]["notes"], (report["process"], report["totals"])
assert report["totals"]["host"]["allocated_blocks"] > 200, (report["process"], report["totals"])
