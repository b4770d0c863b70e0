#!/usr/bin/env python3
# needs: pip:comfy-aimdo==0.6.0
# timeout: 1500
"""The GPU suite without a GPU. Every part is skipped, with that reason. The Python code of each part compiles. Its
programs are right over the simulated driver, a test double, where no figure is shown. Failures are reported. The folder
that is carried to another machine is complete."""
import importlib.util, os, pathlib, re, sys, tarfile, time, types

import support, _simulated

SUITE = support.ROOT / "tests/gpu"
SOURCES = sorted(p for p in (*SUITE.glob("*.py"), *SUITE.glob("*.c")) if not p.name.startswith("_"))
PARTS = sorted(p.stem for p in SOURCES if "only:" not in p.read_text()[:200])
WITHOUT = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "COMFYUI")}


def suite(*names, folder=SUITE, build=support.BUILD, status=0, env=WITHOUT, python=sys.executable):
    """The output of the suite, line by line."""
    return support.run(folder / "run", "--build", build, "--python", python, *names, status=status, env=env,
                       timeout=900).stdout.splitlines()


def needed_glibc(path):
    """The newest version of glibc that a program or library asks for."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", support.run("objdump", "-p", path).stdout)
    return max(((int(a), int(b)) for a, b in found), default=(0, 0))


def limits_noted(environment):
    """An environment in which each Python program writes into the file "limits" how long its commands may take."""
    (support.HERE / "noted").mkdir()
    (support.HERE / "noted/sitecustomize.py").write_text("""import subprocess
run = subprocess.run
def noting(*words, **options):
    with open("PLACE", "a") as file:
        file.write(f"{options.get('timeout')}\\n")
    return run(*words, **options)
subprocess.run = noting
""".replace("PLACE", str(support.HERE / "limits")))
    return {**environment, "PYTHONPATH": f"{support.HERE / 'noted'}:{environment['PYTHONPATH']}"}


def outcomes(lines):
    return {said[2]: said[1] for line in lines if (said := re.match(r"(passed|failed|skipped) +(\w+)", line))}


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

assert support.LIMIT is None # for parts. This is a test
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

double = _simulated.environment(
    13, LD_LIBRARY_PATH=f"{_simulated.LIBRARIES}:{_simulated.LIBRARIES}/13:{_simulated.LIBRARIES}/12")
double.pop("COMFYUI", None)
lines = suite("moves", "moves_pinned", "graphs", "rescue", "kept", "routes", "cupti", "speed", "comfyui", "lib_jax",
              "lib_aimdo", "facts", "costs", env=limits_noted(double), python=os.path.relpath(sys.executable))
assert "Simulated device 0 (test double)" in lines[0] and lines[1].startswith("Python 3."), lines
assert "test double" in lines[2], lines
found = outcomes(lines)
has_rescue = b"MEMSTOW_CUDA_RESCUE" in support.LIBRARY.read_bytes()
assert found.pop("rescue") == ("passed" if has_rescue
                               else "skipped") and found.pop("lib_jax") == found.pop("comfyui") == "skipped", lines
assert set(found.values()) == {"passed"} and len(found) == 10, lines
limits = set((support.HERE / "limits").read_text().split())
assert limits == {"None"}, f"the runner limits a part, and nothing in it has a limit of its own: {limits}"
assert not re.search(r"\d (ns|GB/s)|figure us_", "\n".join(lines)), "times of a test double are not shown"

# What is measured has run for a second before.
for what in ("pairs", "kernels"):
    began = time.monotonic()
    assert "over a test double" in support.run(support.BUILD / "tests/gpu/speed", what, env=double).stdout
    assert time.monotonic() - began >= 1, what

# A program that is killed has already said what it knew.
with open("costs.txt", "w") as file:
    costs = support.start(support.BUILD / "tests/gpu/costs", stdout=file,
                          env={**double, "SIMCUDA_LATENCY_US": "600000000"})
support.wait_for(lambda: "figure first_pinned_takes" in pathlib.Path("costs.txt").read_text(), 60, "a figure")
costs.kill()

# Which calls wait for a kernel is a fact of a driver: the part finds it out. The first stream may take memory.
busy = {**double, "SIMCUDA_LATENCY_US": "200000", "SIMCUDA_CAPACITY": "3G", "SIMCUDA_FILL": "0"}
waits = {mode: {word.split()[1]: word.split()[2] for word in suite("costs", env={**busy, **settings})
                if word.strip().startswith("figure waits_")}
         for mode, settings in {"free": {}, "drains": {"SIMCUDA_DRAINS": "1"}}.items()}
assert {name for name, is_so in waits["free"].items() if is_so == "1"} == {"waits_unpin_64", "waits_free_64"}, waits
assert {name for name in waits["free"] if waits["free"][name] != waits["drains"][name]} == {
    f"waits_{call}_{mib}" for call in ("unmap", "access") for mib in (2, 64, 1024)}, waits
assert outcomes(suite("moves", "moves_pinned", env={**double, "SIMCUDA_FIRST": "6M"})) == dict.fromkeys(
    ("moves", "moves_pinned"), "passed")

lines = suite("moves", env={**double, "SIMCUDA_FAIL": "cuMemUnmap:1:1"}, status=1)
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
assert len(wanted) > 20 and max(wanted.values()) <= (2, 35), wanted # docs/install.md names 2.35
lines = suite("graphs", folder=carried / "tests/gpu", build=carried / "build/dev", env=double)
assert outcomes(lines) == {"graphs": "passed"}, lines

# Whoever reads what a GPU has shown finds each feature, also those that none has shown.
sources = "".join(path.read_text() for path in (support.ROOT / "preload").rglob("*.c"))
settings = set(re.findall(r'"MEMSTOW_CUDA(_[A-Z]+)"', sources))
rows = (support.ROOT / "docs/gpu.md").read_text().split("## What has been seen")[1]
named = set(re.findall(r"(?:MEMSTOW_CUDA|`)(_[A-Z]+)`", rows))
assert settings and settings == named, settings ^ named
assert all(word in rows for word in ("memstow_owner_discard", "memstow_load_begin", "workspaces", "error 700")), rows

# A part that does not end leaves no process behind: it would hold the GPU's memory during the next part.
(carried / "tests/gpu/hangs.py").write_text("""# timeout: 10
import subprocess
child = subprocess.Popen(["sleep", "600"])
open("PLACE", "w").write(str(child.pid))
print("waits", flush=True)
child.wait()
""".replace("PLACE", str(support.HERE / "child")))
lines = suite("hangs", folder=carried / "tests/gpu", build=carried / "build/dev", env=double, status=1)
assert [line.strip() for line in lines[-3:]] == ["waits", "no end after 10 s", "0 passed, 1 failed, 0 skipped"], lines
support.wait_for(lambda: support.is_gone((support.HERE / "child").read_text()), 30,
                 "the end of what the part had started")
print(f"{len(PARTS)} parts; programs over the simulated driver, a test double")

# A stand-in for compute-sanitizer. It reports $FOUND errors. If that is 0, it runs the program first.
(support.HERE / "bin").mkdir()
sanitizer = support.HERE / "bin/compute-sanitizer"
sanitizer.write_text("""#!/bin/sh
while [ "${1#*/memstow}" = "$1" ]; do shift; done
[ "$FOUND" != 0 ] || "$@" || exit
echo "========= ERROR SUMMARY: $FOUND errors"
exit $((FOUND ? 99 : 0))
""")
sanitizer.chmod(0o755)
for errors, outcome in (("0", "passed"), ("3", "failed")):
    lines = suite("sanitizer", status=outcome == "failed", python=os.path.relpath(sys.executable),
                  env={**double, "PATH": f"{support.HERE / 'bin'}:{os.environ['PATH']}", "FOUND": errors})
    assert outcomes(lines) == {"sanitizer": outcome}, lines
assert any("ERROR SUMMARY: 3 errors" in line for line in lines), lines
