"""Shared by the tests of the simulated CUDA driver: the paths of its libraries, clients and programs, and functions
that run a client or a program."""
import json
import os
import pathlib
import subprocess

import support

BUILD = pathlib.Path(os.environ["MEMSTOW_BUILD"]) / "tests/simcuda"
ROUTES = sorted(p.name for p in (BUILD / "clients").iterdir())

DRIVER = {"device": (3156968, 3), "managed": (4194304, 1), "pool": (27275321, 22), "pinned": (2101248, 2),
          "registered": (1048576, 1), "array": (5521408, 3), "vmm": (4194304, 1)}
RUNTIME = {"device": (3145728 + 10240 + 40960, 3), "managed": (4194304, 1), "pool": (27275321, 22),
           "pinned": (2101248, 2), "registered": (1048576, 1), "array": (5521408, 3)}


def environment(**more):
    libraries = [BUILD / "lib", BUILD / "lib/12", BUILD / "lib/13"]
    return support.in_mode(dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, libraries)), **more))


def client(route):
    return BUILD / "clients" / route


def run_client(route, *before, **more):
    """Runs a client. Its command line begins with the words of `before`. Returns the memory that the client says is
    live: kind → (bytes, blocks)."""
    result = subprocess.run([*before, client(route)], env=environment(**more), capture_output=True, text=True,
                            timeout=100)
    assert result.returncode == 0, f"{route}: status {result.returncode}\n{result.stdout}{result.stderr}"
    lines = result.stdout.splitlines()
    assert lines[-1] == "ok", result.stdout
    return {kind: (int(size), int(blocks)) for _, kind, size, blocks in map(str.split, lines[:-1])}


def expected(route):
    return DRIVER if route.startswith("driver_") else RUNTIME


def settings(case, folder):
    """The settings of memstow and the driver for a case of _moves.c or _contexts.c that moves memory to `folder`."""
    moves = {} if case == "off" else {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1"}
    own = {"no_host": {"MEMSTOW_CUDA_HOST": "8M"}, "exportable": {"MEMSTOW_CUDA_IPC": "1"},
           "total_stays": {"MEMSTOW_CUDA_TOTAL": "1"}}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_STOW_DIR": str(folder), **moves, **own.get(case, {})}


def ahead_settings(case):
    """The settings of memstow and the driver for a case of _ahead.c."""
    pinned = {"in_large_pieces": "600M", "within_the_limit": "24M"}
    large = {"SIMCUDA_CAPACITY": "400M", "SIMCUDA_FILL": "0"} if case == "in_large_pieces" else {}
    off = {"MEMSTOW_CUDA_AHEAD": "0"} if case == "turned_off" else {}
    two = {"SIMCUDA_DEVICES": "2"} if case == "reset_of_another" else {}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1", **two,
            "MEMSTOW_CUDA_PINNED": pinned.get(case, "100M"), **large, **off}


def left_out(program):
    """The cases of this program that rooms_long.py leaves out in the present mode of the driver."""
    words = os.environ.get("SIMCUDA_LEFT_OUT", "").split()
    return {word.partition(":")[2] for word in words if word.startswith(f"{program}:")}


def run_cases(name, count, wish, killed=(), without=(), before=lambda case: None):
    """Runs each case of a program by itself. wish(case) returns the settings of the case. Its ledger is CASE.mst.
    before(case) returns a function that the process calls first, or None."""
    program = BUILD / name
    cases = support.run(program, env=environment()).stdout.split()
    assert len(cases) == count, cases
    for case in cases:
        if case in without or case in left_out(name):
            continue
        done = support.track(program, case, env=environment(**wish(case)), file=f"{case}.mst", status=None,
                             preexec_fn=before(case))
        as_wanted = done.returncode == 137 if case in killed else done.returncode == 0 and done.stdout == "ok\n"
        assert as_wanted, f"{case}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert set(killed) | set(without) <= set(cases), cases


def refusals(file):
    """The memory that the trace reports as not moved: {reason: bytes}."""
    lines = json.loads(support.memstow("decisions", file, "--json").stdout)["lines"]
    return {line["because"]: line["bytes"] for line in lines if line["kind"] == "REFUSED"}
