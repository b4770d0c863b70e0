"""Programs over the simulated CUDA driver, a test double: how to run them, and how to compare them with their
report."""
import os, pathlib

import expectations, support

BUILT = support.BUILD / "tests/simcuda"
LIBRARIES = BUILT / "lib"
SOURCES = support.ROOT / "tests/simcuda"


def environment(generation="", **more):
    """An environment in which the simulated driver, and the runtime of one generation, are found."""
    folders = [LIBRARIES] + [LIBRARIES / str(g) for g in ([generation] if generation else (13, 12))]
    return support.in_mode({**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), **more})


def clients():
    """The program of each route."""
    return sorted(p for p in (BUILT / "clients").iterdir() if os.access(p, os.X_OK))


def said(output):
    """The memory that a client says it holds: {kind: (bytes, blocks)}."""
    lines = [line.split() for line in output.split("\n") if line.startswith("live ")]
    return {kind: (int(size), int(blocks)) for _, kind, size, blocks in lines}


def found(report):
    """The live memory of each kind, from a report."""
    kinds = report["cuda"]["kinds"].items()
    return {name: (kind["live_bytes"], kind["live_blocks"]) for name, kind in kinds}


def program(source, *more, name="program", flags=("-O1", "-g", "-pthread")):
    """Compiles a program that is linked with the simulated driver, and with its runtime if `more` has it."""
    path = pathlib.Path(source)
    out = support.HERE / name
    support.run("cc", *flags, "-D_GNU_SOURCE", f"-I{SOURCES}", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}",
                f"-I{support.ROOT / 'tests/prog'}", path, "-o", out, *more, "-Wl,--allow-shlib-undefined")
    return out


def wrong(lines, file):
    """The expectations that a program printed (tests/expectations.py) and that its report does not meet."""
    return expectations.unmet(lines, support.MEMSTOW, support.HERE / file)
