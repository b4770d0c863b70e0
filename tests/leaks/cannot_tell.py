#!/usr/bin/env python3
# timeout: 300
"""memstow leaks gives no verdict after too few runs, or while Python has not collected the garbage of most runs. This
answer has an exit status of its own, a reason, and advice. A running program is asked to collect its garbage, which it
does between two runs. The command waits for the collection, and says so on a terminal. After the collection, garbage is
no leak, and real leaks are found. If the program cannot be asked, or its run goes on, there is still no verdict."""
import os, pathlib, re, subprocess

import support
from _leaks import Program, leaks

pathlib.Path("program.py").write_text(f"""
import gc, sys
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
import memstow
gc.set_threshold(10**8) # no collection comes by itself
kept, leaks, runs = [], sys.argv[1] == "leaks", int(sys.argv[2])
def garbage():
    cycle = [bytearray(50_000)]
    cycle.append(cycle)
def leak():
    kept.append(bytearray(20_000))
def say(word):
    print(word, flush=True)
    sys.stdin.readline()
for run in range(runs):
    with memstow.run(f"run {{run}}"):
        garbage()
        if leaks:
            leak()
say("ready")
with memstow.run("the one that waits"):
    say("on")
say("over")
""")


def program(what, runs):
    started = Program(support.PYTHON, "program.py", what, str(runs), file=f"{what}{runs}.mst")
    started.wait_for("ready")
    return started


def must_not_tell(document, why, advice):
    assert document["verdict"] == "cannot_tell" and re.fullmatch(why, document["why"]), document["why"]
    assert re.fullmatch(advice, document["advice"]) and not document["found"], document["advice"]
    return document


def end(started):
    for word in ("on", "over"):
        started.go_on()
        started.wait_for(word)
    started.end()


# ---- too few runs

few = program("leaks", 3)
must_not_tell(leaks(few.pid(), status=5), "3 runs have ended, but a verdict needs 9", "let 6 more end, and look again")
text = support.memstow("leaks", few.pid(), status=5).stdout
assert ("\nCannot tell: 3 runs have ended, but a verdict needs 9.\nWhat to do: let 6 more end, and look "
        "again.\n") in text, text
assert "No leak found" not in text, text
end(few)

# ---- garbage: in a program that answers requests, in one that does not, and in a file

CLEAN, LEAKY = program("clean", 14), program("leaks", 14)
for started in (CLEAN, LEAKY):
    document = must_not_tell(leaks(started.pid(), "--timeout=0", status=5), "14 of 14 runs may have left garbage",
                             ".*gc.collect.*")
    assert document["runs"]["judged"] < 5, document["runs"]
    support.memstow("snapshot", started.pid(), "-o", f"{started.file}.snapshot")
    must_not_tell(leaks(f"{started.file}.snapshot", status=5), "14 of 14 runs may have left garbage", ".*gc.collect.*")
assert leaks(CLEAN.pid(), status=0)["runs"]["judged"] >= 9
document = leaks(LEAKY.pid(), status=1)
assert document["verdict"] == "leak" and (document["why"], document["advice"]) == (None, None), document
[leak] = document["leaks"]
assert leak["stack"] and any(frame["function"] == "leak" for frame in leak["stack"]), leak["stack"]
end(CLEAN)
end(LEAKY)

# ---- in the middle of a run: the command waits for its end, and says so on a terminal

busy = program("clean", 14)
busy.go_on()
busy.wait_for("on")
must_not_tell(leaks(busy.pid(), "--timeout=1", status=5), "14 of 14 runs may have left garbage", ".*")
master, terminal = os.openpty()
asking = support.start(support.MEMSTOW, "leaks", busy.pid(), "--timeout=200", stdout=subprocess.PIPE, stderr=terminal,
                       text=True)
os.close(terminal)
said = b""
while b"waiting until it has collected garbage between two runs" not in said:
    said += os.read(master, 4096)
assert asking.poll() is None, "it did not wait for the run"
busy.go_on()
busy.wait_for("over")
text = asking.communicate(timeout=120)[0]
os.close(master)
assert asking.returncode == 0 and "No leak found" in text, (asking.returncode, text)
busy.end()
