"""Programs over the simulated CUDA driver, a test double: how they are run, and what their report must say."""
import os, pathlib

import expectations, support

BUILT = support.BUILD / "tests/simcuda"
LIBRARIES = BUILT / "lib"
SOURCES = support.ROOT / "tests/simcuda"


def environment(generation="", **more):
    """The environment in which the simulated driver, and the runtime of a generation, are found."""
    folders = [LIBRARIES] + [LIBRARIES / str(g) for g in ([generation] if generation else (13, 12))]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, folders)), **more}


def clients():
    """Each route's program."""
    return sorted(p for p in (BUILT / "clients").iterdir() if os.access(p, os.X_OK))


def said(output):
    """What a client says that it holds: {kind: (bytes, blocks)}."""
    lines = [line.split() for line in output.split("\n") if line.startswith("live ")]
    return {kind: (int(size), int(blocks)) for _, kind, size, blocks in lines}


def found(report):
    """The same of a report."""
    kinds = report["cuda"]["kinds"].items()
    return {name: (kind["live_bytes"], kind["live_blocks"]) for name, kind in kinds}


def program(source, *more, name="program", flags=("-O1", "-g", "-pthread")):
    """Compiles a program that is linked with the simulated driver, and with its runtime if `more` says so."""
    path = pathlib.Path(source)
    out = support.HERE / name
    support.run("cc", *flags, "-D_GNU_SOURCE", f"-I{SOURCES}", f"-I{support.ROOT}", f"-I{support.ROOT / 'include'}",
                f"-I{support.ROOT / 'tests/prog'}", path, "-o", out, *more, "-Wl,--allow-shlib-undefined")
    return out


def wrong(lines, file):
    """Which of the expectations that a program printed (tests/expectations.py) its report does not meet."""
    return expectations.unmet(lines, support.MEMSTOW, support.HERE / file)
