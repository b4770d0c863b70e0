#!/usr/bin/env python3
# needs: cc deb:libunwind-dev
"""Two Pythons in one program, each opened with RTLD_LOCAL, call each other. The frames of both are seen, in the order
of the calls. If a Python is closed and opened again, its frames are seen each time."""
import os, pathlib

import support
from _pythons import HERE, ask, build_probe, pythons

shared = {}
for python, version in pythons().items():
    if ask(python, "sysconfig.get_config_var('Py_ENABLE_SHARED')") == "1":
        library = pathlib.Path(ask(python, "sysconfig.get_config_var('LIBDIR')")) / f"libpython{version}.so.1.0"
        if library.exists():
            shared[version] = (library, ask(python, "sys.prefix"))
if not shared:
    support.skip("no shared libpython here")
probe = build_probe()
program = support.HERE / "embed"
support.run("cc", "-g", "-o", program, HERE / "_python_embed.c", probe, f"-Wl,-rpath,{support.HERE}")
versions = sorted(shared)
env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
STEP = ["outer.<locals>.<lambda>", "outer", "<module>"]


def check(output, innermost):
    first, *frames, last = output.strip().split("\n")
    assert first == "16 frames" and last == "lost 0", output
    assert [f.split("\t")[0] for f in frames] == [name for inner in innermost for name in (inner, *STEP)], output


for one, other in zip(versions, versions[1:] + versions[:1]):
    if one != other:
        check(support.run(program, *shared[one], *shared[other], env=env).stdout, ["inner1", "inner0"] * 2)
    rounds = support.run(program, *shared[one], env=env).stdout.split("16 frames\n")[1:]
    assert len(rounds) == 3
    for output in rounds:
        check("16 frames\n" + output, ["inner0"] * 4)
