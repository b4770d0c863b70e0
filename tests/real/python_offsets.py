#!/usr/bin/env python3
# needs: cc
"""preload/stacks/python_layout.c agrees with the headers of CPython. The test compares it with each installed Python
that has a shared library and CPython's internal headers."""
import pathlib

import support
from _pythons import HERE, PRELOAD, ask, pythons

compared = 0
for python, version in pythons().items():
    headers = pathlib.Path(ask(python, "sysconfig.get_paths()['include']"))
    library = pathlib.Path(ask(python, "sysconfig.get_config_var('LIBDIR')")) / f"libpython{version}.so.1.0"
    if not library.exists() or not (headers / "internal/pycore_frame.h").exists():
        print(f"{python}: no shared library with headers")
        continue
    program = support.HERE / f"offsets{version}"
    support.run("cc", "-w", f"-I{headers}", f"-I{headers}/internal", f"-I{support.ROOT}", "-o", program,
                HERE / "_python_offsets.c", PRELOAD / "stacks/python_layout.c", "-ldl",
                "-Wl,--unresolved-symbols=ignore-all")
    assert support.run(program, library, status=None).stdout == ""
    compared += 1
if not compared:
    support.skip("no Python with internal headers and a shared library here")
