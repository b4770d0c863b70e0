#!/usr/bin/env python3
# timeout: 300
# long
"""The runner of the GPU suite: its results, its budget, parts that hang, and devices that break. Its parts here are
small programs of this test, over the simulated driver, a test double; what a real device would do to them is played by
doubles of functions of the runner."""
import contextlib, importlib.machinery, importlib.util, json, os, re, shutil, signal, sys, tarfile, time, types

import support, _simulated

SUITE = support.ROOT / "tests/gpu"
COPY = support.HERE / "root/tests/gpu"
ENVIRONMENT = _simulated.environment(13)


def part(name, text):
    (COPY / f"{name}.py").write_text(text)


def load():
    """Loads the copy's runner as a module. Its own modules come from the copy, too."""
    sys.path.insert(0, str(COPY))
    loader = importlib.machinery.SourceFileLoader("gpu_run", str(COPY / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


def suite(*words, status=0, **more):
    return support.run(COPY / "run", "--build", support.BUILD, "--python", sys.executable, *words, status=status,
                       env={**ENVIRONMENT, **more}, timeout=200).stdout


def results(name):
    """The lines of a run, by part, in their order."""
    lines = [json.loads(line) for line in (support.HERE / name / "results.jsonl").read_text().splitlines()]
    return {line["part"]: line for line in lines}


def outcomes(name):
    return {part: line["outcome"] for part, line in results(name).items()}


COPY.mkdir(parents=True)
for name in ("run", "_child.py", "_device.py", "_gpu.py", "_results.py"):
    shutil.copy2(SUITE / name, COPY / name)
part("facts", "print('figure first 1')\nprint('figure cost 2.5e-06')\n") # the name of the first part of all
part("zz_fails", "assert 1 + 1 == 3, 'sums'\n")
part("beside", "open('out.mst', 'w').write('a ledger')\nprint('figure is_so true')\n")
part("huge", '''for name, mib in (("huge", 1024), ("plain.mst", 70), ("huge.mst", 257)):
    open(name, "w").truncate(mib << 20) # ComfyUI's ledger has 70 MiB
''')
part("skips", "print('no such library')\nraise SystemExit(77)\n")

# --- results: one line for each part, the most telling part first; a summary; an archive

said = suite("--out", support.HERE / "first", status=1)
assert list(outcomes("first").items()) == [("facts", "passed"), ("beside", "passed"), ("huge", "passed"),
                                           ("skips", "skipped"), ("zz_fails", "failed")], said
first = results("first")
assert first["facts"]["figures"] == {"first": 1, "cost": 2.5e-06} and first["beside"]["figures"] == {"is_so": True}
assert first["zz_fails"]["failed"] == "AssertionError: sums" and first["skips"]["why"] == "no such library", first
summary = json.loads((support.HERE / "first/summary.json").read_text())
assert summary["outcomes"] == {"passed": ["facts", "beside", "huge"], "skipped": ["skips"], "failed": ["zz_fails"]}
assert summary["figures"]["facts"]["first"] == 1 and "test double" in summary["runs_on"][0], summary
with tarfile.open(support.HERE / "first.tar.gz") as archive:
    names = set(archive.getnames())
    left_out = archive.extractfile("first/left_out.txt").read().decode()
assert {"first/results.jsonl", "first/summary.json", "first/beside/out.mst",
        "first/zz_fails/output.txt"} <= names, names
assert left_out == "huge/huge\nhuge/huge.mst\n" and not {"first/huge/huge", "first/huge/huge.mst"} & names, left_out
assert "first/huge/plain.mst" in names, names

# --- a second run: what failed, and what the first had no time for

with open(support.HERE / "first/results.jsonl", "a") as file:
    file.write(json.dumps({"part": "beside", "outcome": "unfinished"}) + "\n")
suite("--out", support.HERE / "second", "--again", support.HERE / "first", status=1)
assert outcomes("second") == {"beside": "passed", "zz_fails": "failed"}, outcomes("second")
assert "is there already" in support.run(COPY / "run", "--build", support.BUILD, "--out", support.HERE / "second",
                                         status=2, env=ENVIRONMENT).stderr
plan, lines = support.HERE / "first/planned.json", support.HERE / "first/results.jsonl"
assert json.loads(plan.read_text()) == ["facts", "beside", "huge", "skips", "zz_fails"], plan.read_text()
killed = support.HERE / "killed" # as a run that was killed while it wrote the line of its second part
killed.mkdir()
shutil.copy(plan, killed)
(killed / "results.jsonl").write_text("".join(lines.read_text().splitlines(True)[:2])[:-30])
suite("--out", support.HERE / "third", "--again", killed, status=1)
assert outcomes("third") == {"beside": "passed", "huge": "passed", "skips": "skipped", "zz_fails": "failed"}
(killed / "results.jsonl").unlink() # as a run that was killed before the end of its first part
assert suite("--again", killed, status=1).splitlines()[-1] == "3 passed, 1 failed, 1 skipped"
(support.HERE / "settled").mkdir()
(support.HERE / "settled/results.jsonl").write_text('{"part": "facts", "outcome": "passed"}\n')
assert suite("--again", support.HERE / "settled").splitlines()[-1] == "0 passed, 0 failed, 0 skipped"

# --- a part that hangs, with a child: where it waits is written down, and the run goes on

for name in ("zz_fails", "beside", "huge", "skips"):
    (COPY / f"{name}.py").unlink()
part("hangs", """# timeout: 5
import os, subprocess
print('waits')
subprocess.run(['sleep', '600'], preexec_fn=os.setpgrp)
""")
part("inner", """# timeout: 10
import time, _gpu
def work():
    print('began')
    time.sleep(600)
_gpu.main(__file__, lambda: _gpu.under_memstow(__file__, 'work'), work=work)
""")
part("later", "")
suite("--out", support.HERE / "hung", status=1)
hung = {"facts": "passed", "hangs": "failed", "inner": "failed", "later": "passed"}
assert outcomes("hung") == hung, outcomes("hung")
assert results("hung")["hangs"]["failed"] == "no end after 5 s", results("hung")
waited = (support.HERE / "hung/hangs/waited_for.txt").read_text()
assert "sleep 600" in waited and waited.count("waits in") >= 2 and "system call" in waited, waited
assert support.is_gone(re.search(r"process (\d+): sleep 600", waited)[1]), "it has a process group of its own"
assert (support.HERE / "hung/hangs/output.txt").read_text() == "waits\n"
waited = (support.HERE / "hung/inner/waited_for.txt").read_text()
assert "memstow run" in waited and "inner.py work" in waited, waited
assert (support.HERE / "hung/inner/work.out").read_text() == "began\n", "what a part's program has said is not lost"
(COPY / "inner.py").unlink()

# --- a budget: a part that it cuts short, and the later parts, are "unfinished", and left for the next run

runner = load()
RESERVE, runner.RESERVE, runner.LEAST = runner.RESERVE, 1, 1
part("hangs", "import time\nprint('waits', flush=True)\ntime.sleep(600)\n")
os.environ.update(ENVIRONMENT)


def inside(name, *words):
    """Runs the suite in this process, with the functions that this test replaced in its modules."""
    return runner.main(["--build", str(support.BUILD), "--out", str(support.HERE / name), *words])


began = time.monotonic()
assert inside("short", "--budget", "15") == 1
assert outcomes("short") == {"facts": "passed", "hangs": "unfinished", "later": "unfinished"}, outcomes("short")
assert time.monotonic() - began < 100, "the part alone would take 300 s"
assert "the time of the run was spent" in results("short")["hangs"]["why"]

# --- at the end of the budget everything hangs at once: dmesg, nvidia-smi, and the part, which SIGKILL does not end.
# The double of each only advances a clock by the time that it may take

clock = [0.0]
execute, shutil_there, time_there = runner._child.execute, runner._device.shutil, runner.time


def hanging(argv, seconds, said, look=None, **options):
    """A double of execute. A call with "cwd" is for the part. The part, dmesg and nvidia-smi hang; other programs
    really run."""
    is_part = "cwd" in options
    if not is_part and argv[0] not in ("dmesg", "nvidia-smi"):
        return execute(argv, seconds, said, **options)
    clock[0] += seconds
    waited_for = look(-1) if is_part else ""
    clock[0] += runner._child.ENDS
    return runner._child.Ended(None, "", waited_for, is_left=True)


part("hangs", "# timeout: 900\n")
runner.RESERVE, mine = RESERVE, runner.RESERVE
runner._child.execute, runner._device.shutil = hanging, types.SimpleNamespace(which=lambda program: program)
runner.time = types.SimpleNamespace(monotonic=lambda: clock[0])
assert inside("worst", "--budget", "560", "hangs") == 1
runner._child.execute, runner._device.shutil, runner.time = execute, shutil_there, time_there
runner.RESERVE = mine
assert outcomes("worst") == {"hangs": "unfinished"}, results("worst")
assert 500 < clock[0] <= 560 - 5, f"{clock[0]} s, and the archive has 5"

# --- a process that SIGKILL does not end, because it waits in the driver. Here, a replaced `kill` leaves it alive.
# stuck: this process is the part itself. stuck_below: the part has started it, and it looks like a zombie, because its
# first thread has ended and another thread still runs. left_over: the part has started it, and then has ended

kill, ENDS = runner._child.kill, runner._child.ENDS
WAITS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).syscall(60, 0) # exit, of the first thread alone
"""
left = set()


def kill_first(session):
    left.add(session)
    with contextlib.suppress(ProcessLookupError):
        os.kill(session, signal.SIGKILL)


for name, ends, kills, first, text in (
        ("stuck", 1, left.add, "failed", "# timeout: 2\nimport time\ntime.sleep(600)\n"),
        ("stuck_below", 1, kill_first, "failed", f"# timeout: 5\nimport subprocess, sys\n"
         f"subprocess.run([sys.executable, '-c', {WAITS!r}])\n"),
        ("left_over", 1, left.add, "passed", "import subprocess\nsubprocess.Popen(['sleep', '600'])\n")):
    runner._child.kill, runner._child.ENDS = kills, ends
    part("hangs", text)
    assert inside(name) == 1
    runner._child.kill, runner._child.ENDS = kill, ENDS
    for session in left:
        kill(session)
    assert outcomes(name) == {"facts": "passed", "hangs": first, "later": "unfinished"}, outcomes(name)
    assert "a process of hangs did not end at SIGKILL" in results(name)["later"]["why"], results(name)
    assert "process" in (support.HERE / name / "hangs/waited_for.txt").read_text()

# --- an error of the driver in the kernel's log, and a device that does not work any more

(COPY / "hangs.py").unlink()
kernel_log, fault = runner._device.kernel_log, runner._device.fault
XID = "NVRM: Xid (PCI:0000:01:00): 31, pid=1, MMU Fault"
answers = [["NVRM: Xid of yesterday"], ["NVRM: Xid of yesterday", XID]]
runner._device.kernel_log = lambda _folder: answers.pop(0)
assert inside("xid") == 1
assert outcomes("xid") == {"facts": "passed", "later": "unfinished"} and XID in results("xid")["facts"]["then"]
runner._device.kernel_log = kernel_log
answers = ["", "cuMemAlloc: error 700"]
runner._device.fault = lambda *_: answers.pop(0)
assert inside("broken") == 1 and outcomes("broken") == {"facts": "passed", "later": "unfinished"}
assert "does not work any more: cuMemAlloc: error 700" in results("broken")["later"]["why"]
runner._device.fault = lambda *_: "cuInit: error 999"
assert inside("dead") == 1 and set(outcomes("dead").values()) == {"unfinished"}
runner._device.fault = fault
os.environ["SIMCUDA_FAIL"] = "cuMemcpyDtoH_v2:1:700"
assert runner._device.fault(sys.executable, support.HERE) == "cuMemcpyDtoH: error 700"
del os.environ["SIMCUDA_FAIL"]
assert runner._device.fault(sys.executable, support.HERE) == ""

# --- libraries are named without an import, which might hang

modules = support.HERE / "modules"
(modules / "torch-9.9.dist-info").mkdir(parents=True)
(modules / "torch-9.9.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9\n")
(modules / "torch.py").write_text("import time\ntime.sleep(600)\n")
assert "torch 9.9" in suite("facts", PYTHONPATH=str(modules)).splitlines()[1]
print("parts over the simulated driver, a test double")
