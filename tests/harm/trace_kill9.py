"""A process that is killed while threads write the trace leaves whole lines, numbered without a gap. While the threads
write, a reader and a snapshot find such lines, too."""
import json, os, random, signal, time

from support import HERE, MEMSTOW, compile, memstow, start, wait_for

PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int (*trace)(const char *);

static void *write_lines(void *argument) {
    char line[1200];
    for (int i = 0;; i++) {
        int thread = (int)(long)argument, fill = 1 + i * 7 % 1000;
        snprintf(line, sizeof line, "{\"thread\":%d,\"i\":%d,\"fill\":\"%0*d\"}", thread, i, fill, 0);
        if (trace(line)) return argument;
    }
}

int main(void) {
    pthread_t thread;
    trace = (int (*)(const char *))dlsym(RTLD_DEFAULT, "memstow_trace");
    for (long i = 0; i < 3; i++) pthread_create(&thread, NULL, write_lines, (void *)i);
    puts("begun");
    fflush(stdout);
    pause();
}
"""


def lines_of(what):
    """Returns the lines of the trace in a file or of a process. Fails if they are not whole and in order."""
    document = json.loads(memstow("decisions", what, "--json").stdout)
    lines = document["lines"]
    assert not document["faults"] and document["lines_lost"] == 0, document["faults"]
    assert [line["n"] for line in lines] == list(range(lines[0]["n"], lines[0]["n"] + len(lines))) if lines else True
    assert all(line["t"] <= after["t"] for line, after in zip(lines, lines[1:]))
    for thread in range(3):
        seen = [line["i"] for line in lines if line["thread"] == thread]
        assert seen == list(range(seen[0], seen[0] + len(seen))) if seen else True, thread
    return lines


def kill_once(program, number, look):
    file = HERE / f"run{number}.mst"
    run = start(MEMSTOW, "run", "--quiet", "-o", file, "--", program, stdout=-1, start_new_session=True)
    run.stdout.readline()
    if look: # while the trace is written; in the first run, after the ring has gone round
        seen = wait_for(lambda: (lines := lines_of(file)) and (number or lines[0]["n"] > 1) and lines,
                        what="a line" if number else "a ring that goes round")
        memstow("snapshot", json.loads(memstow("report", file, "--json").stdout)["process"]["pid"], "-o",
                "snapshot.mst")
        assert lines_of("snapshot.mst")[-1]["n"] >= seen[-1]["n"]
    time.sleep(random.uniform(0, 0.15))
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    lines = lines_of(file)
    return lines[0]["n"] if lines else 0


random.seed(os.getpid())
program = compile(PROGRAM, "writer")
first = [kill_once(program, number, look=number % 5 == 0) for number in range(30)]
assert first[0] > 1, first
