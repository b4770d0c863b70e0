"""The program keeps its signal mask, dispositions, limits and descriptors. run passes its options on to the library."""
import os, re, subprocess, sys
import support
from support import MEMSTOW, memstow, report

script = """
import os, signal, resource
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())))
print([int(n) for n in signal.valid_signals() if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN])
print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))
print([resource.getrlimit(n) for n in range(10)])
"""
argv = [sys.executable, "-S", "-c", script]


def prepare():
    import signal
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGINT})
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


plain = subprocess.run(argv, preexec_fn=prepare, capture_output=True, text=True)
ours = subprocess.run([MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", *argv], preexec_fn=prepare, capture_output=True,
                      text=True)
assert plain.returncode == 0 and plain.stdout == ours.stdout, (plain, ours)
assert ours.returncode == 0

done = memstow("run", "--quiet", "-o", "100%%/%n.%p.mst".replace("100%%/", ""), "--stacks=sample:64K", "--follow=a,b",
               "--pressure=90%,4G,kept", "--idle=300",
               "--allocator=keep", "env", env={**os.environ, "LD_PRELOAD": ""})
env = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
assert env["MEMSTOW_OUT"] == os.getcwd() + "/%n.%p.mst" and "MEMSTOW_OUT_NAMED" not in env
assert env["LD_PRELOAD"].endswith("/libmemstow.so")
assert re.fullmatch("[0-9a-f]{32}", env["MEMSTOW_RUN"]) and env["MEMSTOW_MAIN"].isdigit()
assert (env["MEMSTOW_PRESSURE"], env["MEMSTOW_IDLE"]) == ("90%,4G,kept", "300")
assert (env["MEMSTOW_STACKS"], env["MEMSTOW_FOLLOW"], env["MEMSTOW_ALLOCATOR"]) == ("sample:65536", "a,b", "keep")
os.mkdir("50%n")
done = memstow("run", "--quiet", "-o", "x.mst", "env", cwd="50%n")
assert f"MEMSTOW_OUT={os.getcwd()}/50%%n/x.mst\n" in done.stdout and "MEMSTOW_OUT_NAMED=1\n" in done.stdout
assert os.path.exists("50%n/x.mst"), os.listdir("50%n")

# Python's allocator is changed only on request, and only if nobody else has set it.
note = "memstow: PYTHONMALLOC={} is set, and stays: --python-objects changes nothing\n"
for option, value, wanted, said in (((), None, None, ""), ((), "debug", "debug", ""),
                                    (("--python-objects",), None, "malloc", ""),
                                    (("--python-objects",), "", "malloc", ""),
                                    (("--python-objects",), "malloc", "malloc", ""),
                                    (("--python-objects",), "pymalloc", "pymalloc", note.format("pymalloc"))):
    given = {name: text for name, text in os.environ.items() if name != "PYTHONMALLOC"}
    if value is not None:
        given["PYTHONMALLOC"] = value
    done = memstow("run", "--quiet", "-o", "p.mst", *option, "--", "sh", "-c", "env; true", env=given)
    env = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
    assert (env.get("PYTHONMALLOC"), done.stderr) == (wanted, said), (option, value, done)

# Variables stay if their options are not given.
for option, there, wanted in (((), None, None), ((), "123", "123"), (("--stack-memory=64M",), "123", str(64 << 20)),
                              (("--stack-memory=65536",), None, "65536"),
                              (("--stack-memory=1.5GiB",), None, str(3 << 29))):
    done = memstow("run", "--quiet", "-o", "s.mst", *option, "--", "sh", "-c", "env; true",
                   env={**os.environ, **({"MEMSTOW_STACK_MEMORY": there} if there else {})})
    env = dict(line.split("=", 1) for line in done.stdout.split("\n") if "=" in line)
    assert env.get("MEMSTOW_STACK_MEMORY") == wanted, (option, there, env.get("MEMSTOW_STACK_MEMORY"))

# If values that the command would refuse reach the library through the environment, they count as not set, and the
# report says so.
for pressure, idle, wanted in (("lots", "300", ["MEMSTOW_PRESSURE"]), ("150%", "", ["MEMSTOW_PRESSURE"]),
                               ("4G", "-4", ["MEMSTOW_IDLE"]), ("psi:x", "abc", ["MEMSTOW_PRESSURE", "MEMSTOW_IDLE"]),
                               ("90%,kept", "300", []), ("", "", [])):
    memstow("run", "--quiet", "-o", "w.mst", "--", "true",
            env={**os.environ, "MEMSTOW_PRESSURE": pressure, "MEMSTOW_IDLE": idle})
    notes = report("w.mst")["process"]["notes"]
    assert [note.split()[0]
            for note in notes] == wanted and all("not set" in note for note in notes), (pressure, idle, notes)

# The report also has a note for a wrong value of a variable that the command itself would set.
for variable, wrong, right in (("MEMSTOW_STACKS", "some", "full"), ("MEMSTOW_STACKS", "sample:0", "sample:4096"),
                               ("MEMSTOW_STACK_MEMORY", "64M", "67108864"), ("MEMSTOW_ALLOCATOR", "jemalloc", "keep")):
    for value, wanted in ((wrong, [variable]), (right, []), ("", [])):
        support.run("true",
                    env={**os.environ, "LD_PRELOAD": str(support.LIBRARY), "MEMSTOW_OUT": str(support.HERE / "p.mst"),
                         variable: value})
        notes = report("p.mst")["process"]["notes"]
        assert [note.split()[0] for note in notes] == wanted, (variable, value, notes)

# With --cupti the library is not preloaded. If an outer run has put it into LD_PRELOAD, it is removed from there, even
# if it follows a file with a similar path.
if not support.features()["sanitize"]: # the command itself would start behind that file
    library = support.LIBRARY.resolve()
    done = support.run(MEMSTOW, "run", "--quiet", "--cupti", "-o", "inner.mst", "env",
                       env={**os.environ, "LD_PRELOAD": f".{library}:{library}"})
    assert f"LD_PRELOAD=.{library}:\n" in done.stdout, done.stdout

# With hardly any memory for stacks, every block is counted nevertheless, and the report counts the lost stacks.
program = [sys.executable, "-S", "-c", "import json, argparse"]
blocks = {}
for size in ("64M", "64K"):
    memstow("run", "--quiet", "-o", "room.mst", f"--stack-memory={size}", "--stacks=full", "--", *program)
    blocks[size] = report("room.mst")
assert blocks["64M"]["lost"]["stacks"] == 0 < blocks["64K"]["lost"]["stacks"], [b["lost"] for b in blocks.values()]
assert blocks["64K"]["totals"]["allocated_blocks"] > 1000, blocks["64K"]["totals"]
