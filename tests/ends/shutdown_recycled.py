# needs: root
"""Before the shutdown or in the middle of it, a registered process ends, and another process gets its pid and group.
Neither the coordinator nor the forced end touches the other process or its group. The log reports the other process as
left, under its own name."""
import json, os, pathlib, signal

from support import ROOT, compile, is_gone, memstow, skip

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))

static pid_t child(void (*on_term)(int), int group) {
    void (*before)(int) = signal(SIGTERM, on_term); /* the child has it from its first moment on */
    pid_t pid = fork();
    if (pid == 0) {
        close(1), close(2);
        for (;;) pause();
    }
    signal(SIGTERM, before);
    if (group) setpgid(pid, pid);
    if (CALL(shutdown_process)(pid, "registered", 0) < 0) exit(2);
    return pid;
}

/* Another process gets the pid, once nobody has it any more, and leads a group of that number. */
static void *take_over(void *of) {
    pid_t pid = *(pid_t *)of;
    uint64_t arguments[11] = {[4] = SIGCHLD, [8] = (uintptr_t)&pid, [9] = 1}; /* exit_signal, set_tid, set_tid_size */
    waitpid(pid, NULL, 0);
    usleep(50000); /* starts are counted in ticks of 10 ms */
    long got = syscall(SYS_clone3, arguments, sizeof arguments);
    if (got == 0) {
        setpgid(0, 0);
        close(1), close(2);
        for (;;) pause();
    }
    if (got < 0) perror("clone3"), _exit(77);
    setpgid((pid_t)got, 0);
    printf("%d %d\n", (int)pid, (int)got);
    fflush(stdout);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    pid_t pid = child(SIG_DFL, 1);
    if (strcmp(argv[1], "during") == 0) {
        child(SIG_IGN, 0); /* is waited for */
        pthread_create(&thread, NULL, take_over, &pid);
        usleep(100000);
        CALL(shutdown_begin)("the test", 0, 76);
        return CALL(shutdown_processes)(1500) != 1;
    }
    kill(pid, SIGKILL);
    take_over(&pid);
    usleep(100000);
    if (strcmp(argv[1], "forced") == 0) {
        CALL(shutdown_begin)("the test", 200, 76);
        for (;;) pause();
    }
    return CALL(shutdown)("the test", 0, 76) != 1; /* it is our child */
}
""", "recycled", ("-O1", "-g", "-pthread", "-I", ROOT / "include"))

for word, status, ended in (("before", 0, []), ("forced", 76, []), ("during", 0, ["SIGTERM", "SIGKILL"])):
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    done = memstow("run", "--quiet", "-o", "x.mst", "--", program, word, status=None)
    if done.returncode == 77:
        skip(f"no process can be given a pid here: {done.stderr.strip()}")
    registered, now = map(int, done.stdout.split())
    assert done.returncode == status and registered == now, (word, done)
    assert not is_gone(now), word
    os.kill(now, signal.SIGKILL)
    lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
    assert [line["ended"] for line in lines if line["step"] == "process"] == ended, (word, lines)
    if word != "during":
        assert [line["name"] for line in lines if line["step"] == "left process"] == ["recycled"], (word, lines)
