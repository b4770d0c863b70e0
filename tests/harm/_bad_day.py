"""Shared by the tests of bad conditions. They run a program with memstow and without it. With memstow, the program
makes its ledger grow."""
import pathlib, resource

import support

LARGE, PAGES, MAPS = 1500 * 70000, 1500 * 4096, 750 * 8192 # the memory that grow.c leaves live


def program():
    return support.compile(pathlib.Path(__file__).with_name("grow.c"), flags=("-O1", "-g", "-pthread", "-w",
                                                                            "-fno-builtin-malloc"))


def same(argv, file="out.mst", status=7, options=(), before=None, **more):
    """Runs argv alone (after `before`) and under memstow. Exit status and output must be the same. Returns memstow's
    standard error, with the summary."""
    before and before()
    alone = support.run(*argv, status=None, **more)
    assert alone.returncode == status, f"without memstow: {alone}"
    before and before()
    tracked = support.memstow("run", "-o", file, *options, "--", *argv, status=None, **more)
    told = f"{argv}\nalone: {alone}\ntracked: {tracked}"
    assert tracked.returncode == (status if status >= 0 else 128 - status), told
    assert tracked.stdout == alone.stdout, told
    return tracked.stderr


def is_exact(report, program):
    """Whether all of the program's own blocks and mappings are counted."""
    live = sum(m["live_bytes"] for m in report["modules"] if m["module"] == str(program))
    return live == LARGE + PAGES + MAPS


def limit(what, value):
    """A function for preexec_fn that sets this limit."""
    return lambda: resource.setrlimit(what, (value, value))
