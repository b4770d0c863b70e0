#!/usr/bin/env python3
# needs: cc deb:libdw-dev
# timeout: 300
"""The CFI reader and elfutils find CFA, return address and rbp in the same places. This is compared for every row of
the unwind tables of libc, libstdc++, the interpreter and, if it is installed, PyTorch. The reader refuses only unusual
rows."""
import pathlib, re, subprocess, sys

import support

source, program = pathlib.Path(__file__).with_name("_cfi_oracle.c"), support.HERE / "oracle"
made = support.run("cc", "-O2", "-g", "-D_GNU_SOURCE", "-I", support.ROOT, source,
                   support.ROOT / "preload/stacks/cfi.c", "-ldw", "-lelf", "-o", program, status=None)
if re.search(r"libdw\.h: No such file|cannot find -l", made.stderr):
    support.skip("needs elfutils' libdw")
assert made.returncode == 0, made.stderr


def mapped(*command):
    """The mapped objects of a process that prints its /proc/self/maps."""
    maps = subprocess.run(command, capture_output=True, text=True).stdout
    return {path for path in re.findall(r" (/\S+)$", maps, re.M) if pathlib.Path(path).read_bytes()[:4] == b"\x7fELF"}


MAPS = "import ctypes; ctypes.CDLL('libstdc++.so.6'); print(open('/proc/self/maps').read())"
files = mapped(sys.executable, "-c", MAPS) | mapped(support.PYTHON, "-c", MAPS) | {str(support.LIBRARY)}
torch = {str(p) for p in support.ROOT.glob("build/venv/lib/python3*/site-packages/torch/lib/*.so")}
done = support.run(program, *sorted(files | torch), timeout=280)
print(done.stdout, "" if torch else "PyTorch is not installed: left out", sep="")
for name in ("libc.so", "libstdc++.so", "libmemstow.so"):
    assert re.search(rf"^{re.escape(name)}\S*: [1-9]", done.stdout, re.M), f"{name} was not compared"
