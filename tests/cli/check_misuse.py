#!/usr/bin/env python3
# needs: cc
"""memstow check keeps each ledger that a message about a misused block names, and says where this ledger is. It deletes
the other ledgers."""
import os, re

import support

SOURCE = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) { /* a child misuses a block, if so asked */
    char *volatile p = malloc(5000);
    if (!fork()) {
        free(p);
        if (count > 1) free(p);
        _exit(0);
    }
    wait(NULL);
    return count > 2;
}
"""
temporary = support.HERE / "tmp"
temporary.mkdir()
os.environ["TMPDIR"] = str(temporary)
program = support.compile(SOURCE, flags=("-O1", "-w", "-fno-builtin"))
options = ("--baseline=base.txt", "--runs=1", "--warm-up=0")
support.memstow("check", *options, "--update-baseline", "--", program)
assert not list(temporary.iterdir()), "nothing was misused"

for arguments, status in ((["twice"], 0), (["twice", "fails"], 4)):
    done = support.memstow("check", *options, "--", program, *arguments, status=status)
    named = re.search(r"block freed twice: .*; stacks: memstow report (\S+)$", done.stderr, re.M)[1]
    assert f"memstow: a block was misused: {named} is kept\n" in done.stderr, done.stderr
    assert [misuse["kind"] for misuse in support.report(named)["misuses"]] == ["double_free"]
    files = [path for path in temporary.rglob("*") if path.is_file()]
    assert [str(path) for path in files] == [named], files
    os.unlink(named)
    for folder in sorted(temporary.rglob("*"), reverse=True):
        folder.rmdir()
