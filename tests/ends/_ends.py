"""Shared by the tests of endings: a program with planted faults, and `memstow watch` on it."""
import pathlib, re, time

import support


def faults():
    return support.compile(pathlib.Path(__file__).with_name("_faults.c"), "faults", ("-O1", "-g", "-pthread"))


def watch(*words, grace="3s", options=(), status=0, **more):
    """Runs the faults under watch. Returns its output, and the seconds that it took."""
    begun = time.monotonic()
    done = support.memstow("watch", "--quiet", f"--grace={grace}", *options, "--", *words, status=status, **more)
    return done.stderr, time.monotonic() - begun


def pids(text):
    return [int(pid) for pid in re.findall(r"pid (\d+)", text)]
