#!/usr/bin/env python3
# needs: pip:comfy-aimdo==0.6.0
# timeout: 1500
"""The GPU suite without a GPU. Every part is skipped, with that reason. The Python code of each part compiles. Over the
simulated driver, a test double, parts pass, and failures are reported. The folder that is carried to another machine is
complete. gpu_suite_long.py has all parts over the double."""
import importlib.util, re, sys, tarfile, types

import support
from _gpu_suite import DOUBLE, SUITE, WITHOUT, outcomes, suite

SOURCES = sorted(p for p in (*SUITE.glob("*.py"), *SUITE.glob("*.c")) if not p.name.startswith("_"))
PARTS = sorted(p.stem for p in SOURCES if "only:" not in p.read_text()[:200])


def needed_glibc(path):
    """The newest version of glibc that a program or library asks for."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", support.run("objdump", "-p", path).stdout)
    return max(((int(a), int(b)) for a, b in found), default=(0, 0))


if suite("moves") != ["skipped moves: no GPU", "0 passed, 0 failed, 1 skipped"]:
    assert suite("moves")[0].startswith("device: "), suite("moves")
    support.skip("there is a GPU here: tests/gpu/run is the test")
assert len(PARTS) >= 17, PARTS
lines = suite()
assert sorted(lines[:-1]) == [f"skipped {name}: no GPU" for name in PARTS], lines
assert lines[-1] == f"0 passed, 0 failed, {len(PARTS)} skipped" and lines[0] == "skipped facts: no GPU", lines
assert "no part is named nothing" in support.run(
    SUITE / "run", "--build", support.BUILD, "nothing", status=1, env=WITHOUT).stderr
support.run(SUITE / "run", "--build", support.HERE / "nowhere", status=2, env=WITHOUT)
support.run(SUITE / "run", "--build", support.BUILD, "--python", "./no-python", status=2, env=WITHOUT)

sys.path[:0] = [str(SUITE), str(support.ROOT / "tools/python")]
for source in SUITE.glob("*.py"):
    compile(source.read_text(), str(source), "exec")
    if source.stem != "_triton_kernel": # which needs Triton
        spec = importlib.util.spec_from_file_location(f"part_{source.stem}", source)
        spec.loader.exec_module(importlib.util.module_from_spec(spec))

assert support.LIMIT is None # as it should be for parts. But this is a test
support.LIMIT = 100
import comfyui # tests/gpu/comfyui.py
ended = types.SimpleNamespace(get=print, log=lambda: "Killed", server=types.SimpleNamespace(poll=lambda: 9))
comfyui.watch(ended)
try:
    raise AssertionError(f"a server that has ended answered: {ended.get('/history')}")
except AssertionError as error:
    assert str(error) == "ComfyUI ended:\nKilled", error

import _device # tests/gpu/_device.py
look, _device.LOOK = _device.LOOK, "import time; time.sleep(600)" # stands for a driver that does not answer
try:
    raise AssertionError(f"devices are known: {_device.find(sys.executable, support.HERE, 1)}")
except TimeoutError as error:
    assert "has not said within 1 s" in str(error), error
_device.LOOK = look

import speed # tests/gpu/speed.py: its arithmetic, on invented figures
pinned = []


def invented(*words, options=None, **environment):
    pinned[:] = [environment["MEMSTOW_CUDA_PINNED"]] if "MEMSTOW_CUDA_PINNED" in environment else []
    return {"pairs": {"pair": 1e-6 if options is None else 1.4e-6}, "kernels": {"kernels": 1.0},
            "moves": {"copy_out": 0.02, "first_out": 0.08, "later_out": 0.021, "copy_back": 0.02, "first_back": 0.02,
                      "later_back": 0.022}}[words[0]]


speed.measure = invented
speed.stayed_pinned = lambda: sum(map(int, pinned))
table = list(speed.rows([1 << 30]))
assert [met for _line, met in table] == [True] * 8 + [False] + [True] * 6, table
assert "400 ns" in table[0][0] and "53.7 GB/s" in table[3][0] and "0.25" in table[4][0], table
assert "stays pinned" in table[8][0] and ">= 0.95" in table[5][0] and table[8][0].endswith("MISSED"), table
assert all("buffers" in line and ">=" not in line for line, _met in table[9:]), table
pinned_at_the_end, speed.stayed_pinned = speed.stayed_pinned, lambda: 64 << 20 # the buffers alone
try:
    raise AssertionError(f"nothing stayed pinned, and it was measured: {list(speed.rows([1 << 30]))}")
except AssertionError as error:
    assert "67108864 bytes stayed pinned" in str(error), error
speed.stayed_pinned = pinned_at_the_end
whole = speed.measure
for name in ("pair", "kernels", *(f"{when}_{way}" for when in ("copy", "first", "later") for way in ("out", "back"))):
    speed.measure = lambda *words, left_out=name, **more: {
        k: v for k, v in whole(*words, **more).items() if k != left_out}
    try:
        raise AssertionError(f"without a figure for {name} a goal was met: {list(speed.rows([1 << 30]))}")
    except KeyError:
        pass

lines = suite("moves", "facts", env=DOUBLE)
assert "Simulated device 0 (test double)" in lines[0] and lines[1].startswith("Python 3."), lines
assert "test double" in lines[2] and outcomes(lines) == {"moves": "passed", "facts": "passed"}, lines

lines = suite("moves", env={**DOUBLE, "SIMCUDA_FAIL": "cuMemUnmap:1:1"}, status=1)
assert any(line.startswith("failed  moves") for line in lines) and lines[-1] == "0 passed, 1 failed, 0 skipped", lines
assert any("moves.c:" in line for line in lines), lines

carried = support.HERE / "carried"
support.run(SUITE / "carry", carried, "--build", support.BUILD)
support.run(SUITE / "carry", carried, "--build", support.BUILD, status=2)
with tarfile.open(support.HERE / "carried.tar.gz") as archive:
    assert {"carried/README", "carried/tests/gpu/run", "carried/preload/cuda/cuda_table.h"} <= set(archive.getnames())
assert (support.HERE / "carried.tar.gz").stat().st_size < 64 << 20
assert "tests/gpu/run --out first --budget" in (carried / "README").read_text()
lines = suite(folder=carried / "tests/gpu", build=carried / "build/dev")
assert outcomes(lines) == dict.fromkeys(PARTS, "skipped"), lines
linked = support.run("ldd", carried / "build/dev/memstow", env={}).stdout
assert (f"libdw.so.1 => {carried}/build/dev/lib/" in linked
        and f"liblzma.so.5 => {carried}/build/dev/lib/" in linked), linked
objects = [p for p in (carried / "build").rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]
wanted = {path.name: needed_glibc(path) for path in objects}
assert len(wanted) > 20, wanted
if not support.features()["sanitize"]: # a sanitizer brings libstdc++ of this machine
    assert max(wanted.values()) <= (2, 35), wanted # docs/install.md names 2.35
lines = suite("graphs", folder=carried / "tests/gpu", build=carried / "build/dev", env=DOUBLE)
assert outcomes(lines) == {"graphs": "passed"}, lines

# The section "What has been seen" of docs/gpu.md names each feature, also those that were never seen on a GPU.
sources = "".join(path.read_text() for path in (support.ROOT / "preload").rglob("*.c"))
settings = set(re.findall(r'"MEMSTOW_CUDA(_[A-Z]+)"', sources))
rows = (support.ROOT / "docs/gpu.md").read_text().split("## What has been seen")[1]
named = set(re.findall(r"(?:MEMSTOW_CUDA|`)(_[A-Z]+)`", rows))
assert settings and settings == named, settings ^ named
assert all(word in rows for word in ("memstow_owner_discard", "memstow_load_begin", "workspaces", "error 700")), rows

# A part that does not end leaves no process behind, because such a process would hold the GPU's memory during the next
# part.
(carried / "tests/gpu/hangs.py").write_text("""# timeout: 10
import subprocess
child = subprocess.Popen(["sleep", "600"])
open("PLACE", "w").write(str(child.pid))
print("waits", flush=True)
child.wait()
""".replace("PLACE", str(support.HERE / "child")))
lines = suite("hangs", folder=carried / "tests/gpu", build=carried / "build/dev", env=DOUBLE, status=1)
assert [line.strip() for line in lines[-3:]] == ["waits", "no end after 10 s", "0 passed, 1 failed, 0 skipped"], lines
support.wait_for(lambda: support.is_gone((support.HERE / "child").read_text()), 30,
                 "the end of what the part had started")
print(f"{len(PARTS)} parts")
