"""Shared by the fork tests: a C program whose children print what they hold, and the check of every report."""
import pathlib

import support

START = r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
static void say(const char *who, long live, long blocks, long inherited, long freed) {
    char line[200];
    int n = snprintf(line, sizeof line, "%s %d %ld %ld %ld %ld\n", who, getpid(), live, blocks, inherited, freed);
    write(1, line, n);
}
'''
FLAGS = ("-w", "-O1", "-g", "-pthread", "-fno-builtin")


def run(text, name, count=None, **more):
    """Runs the program, which prints `count` lines `name pid live blocks inherited freed`. Checks the four figures of
    each line against the report of that pid: live bytes and blocks are those of the program's module. A figure of -1
    is not checked. Returns the reports by name."""
    program = support.compile(START + text, name, flags=FLAGS)
    done = support.track(program, **more)
    reports, wrong = {}, []
    lines = done.stdout.strip().split("\n")
    assert len(lines) == count, done
    for line in lines:
        who, pid, *wanted = line.split()
        wanted = [int(w) for w in wanted]
        file = pathlib.Path(f"out.mst.{pid}")
        report = reports[who] = support.report(file if file.exists() else "out.mst")
        assert report["process"]["pid"] == int(pid), f"{line}: no file of it"
        module = [m for m in report["modules"] if m["module"] == str(program)]
        inherited = report["process"]["inherited"] or {"bytes_at_fork": 0, "freed_bytes": 0}
        found = [module[0]["live_bytes"] if module else 0, module[0]["live_blocks"] if module else 0,
                 inherited["bytes_at_fork"], inherited["freed_bytes"]]
        if any(w not in (-1, f) for w, f in zip(wanted, found)):
            wrong.append(f"{who}: live, blocks, inherited, freed are {found}, expected {wanted}")
        lost = {k: v for k, v in report["lost"].items() if v and k not in ("reasons", "blocks", "inexact_sites")}
        if lost:
            wrong.append(f"{who}: lost {lost}")
    assert not wrong, "\n".join(wrong)
    return reports
