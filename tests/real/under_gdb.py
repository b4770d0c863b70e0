#!/usr/bin/env python3
# needs: cc deb:gdb
"""A tracked program can be debugged. gdb is tracked, too. It runs a program to its end. In a second run it stops the
program inside malloc, and shows the program's stack through memstow's frames."""
import support

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static char *make(size_t size) { return memset(malloc(size), 'x', size); }

int main(void) {
    char *kept = make(123456);
    for (int i = 0; i < 1000; i++)
        free(make(10 + i));
    printf("%c done\n", kept[77]);
    return 3;
}
"""
program = support.compile(PROGRAM, "debugged", ["-O1", "-g", "-fno-builtin"])
gdb = ["gdb", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-ex", "set breakpoint pending on"]
done = support.track(*gdb, "-ex", "run", program, status=None)
assert "x done" in done.stdout and "exited with code 03" in done.stdout, done.stdout + done.stderr
reports = [support.report(file) for file in support.HERE.glob("out.mst*")]
debugged = [r for r in reports if r["process"]["name"] == "debugged"]
assert len(debugged) == 1 and debugged[0]["process"]["state"] == "exited", [r["process"] for r in reports]
assert [b["size_bytes"] for b in debugged[0]["large_blocks"]] == [123456], debugged[0]["large_blocks"]

done = support.track(*gdb, "-ex", "break make", "-ex", "run", "-ex", "break __libc_malloc", "-ex", "continue", "-ex",
                     "backtrace", "-ex", "delete", "-ex", "continue", program, file="stopped.mst", status=None)
stack = [line for line in done.stdout.split("\n") if line.startswith("#")]
assert any(" make (" in line for line in stack) and any(" main (" in line for line in stack), done.stdout + done.stderr
assert "x done" in done.stdout, done.stdout
