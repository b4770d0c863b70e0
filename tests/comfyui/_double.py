"""The test double of libmemstow.so, compiled; see _double.c."""
import os, pathlib

import support

HERE = pathlib.Path(__file__).parent


def library():
    """Builds the double in the current folder."""
    target = support.HERE / "libdouble.so"
    if not target.exists():
        support.run("cc", "-shared", "-fPIC", "-g", "-O1", "-pthread", HERE / "_double.c", "-o", target)
    return target


def environment(**more):
    """The environment of a process with the double."""
    return {**os.environ, "LD_PRELOAD": str(library()), "PYTHONPATH": python_path(), **more}


def python_path():
    return os.pathsep.join([str(support.ROOT / "tools/python"), str(support.ROOT / "tests")])
