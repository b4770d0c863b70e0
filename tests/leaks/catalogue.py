# needs: cc
# timeout: 300
"""Twelve programs that leak as real ones did, and two that do so in C and C++: each leak is found in a process that runs, in
a snapshot and in a series, and blamed on the right owner and call stack; and nothing else is found."""
import json, sys

import support
from _leaks import HERE, Program, brief, functions, leaks, plant

sys.path.insert(0, str(HERE))
import _plants # noqa: E402

RUNS = 14


def check(document, node, model, function, retired, where):
    assert document["leaks"], f"{where}: nothing found: {json.dumps(document['not_leaks'])}"
    for leak in document["leaks"]:
        assert (leak["node"], leak["model"]) == (node, model), (where, brief(document))
        assert function in functions(leak["stack"])[:4], (where, brief(document))
        assert leak["bytes_per_run"] >= 4096 and leak["confidence"] in ("medium", "high"), (where, leak)
    gone = [r for r in document["retired"] if r["leak"]]
    assert bool(gone) == retired, (where, brief(document))
    for owner in gone:
        assert owner["name"] == model and function in functions(owner["sites"][0]["stack"])[:2], (where, owner)
        assert any("finalize" in holder for holder in owner["holders"]), (where, owner)


def look(program, name, node, model, function, retired, thoroughly):
    """While it runs; and in a snapshot, and what is said for people names owner and function."""
    pid = program.pid()
    check(leaks(pid), node, model, function, retired, f"{name}, live")
    if not thoroughly:
        return
    support.memstow("snapshot", pid, "-o", f"{name}.mst")
    check(leaks(f"{name}.mst"), node, model, function, retired, f"{name}, snapshot")
    text = support.memstow("leaks", f"{name}.mst", status=1).stdout
    assert (model or node) in text and function.split("(")[0] in text, text
    assert max(map(len, text.split("\n"))) <= 80, text


programs = {name: plant(name, RUNS, file=f"{name}.ledger") for name in _plants.LEAKS}
for name, (model, function, retired) in _plants.LEAKS.items():
    programs[name].wait_for("ready")
    look(programs[name], name, "Leaky", model, function, retired, thoroughly=retired or name == "mapped_twice")
    programs[name].end()

for source, name, function in (("_thread_locals.c", "thread_locals", "remember"), ("_statics.cc", "statics", "note")):
    binary = support.compile(HERE / source, name, flags=("-O1", "-g", "-pthread", f"-I{support.ROOT}/preload"))
    program = Program(binary, RUNS, file=f"{name}.ledger")
    program.wait_for("ready")
    look(program, name, "Leaky", None, function, False, thoroughly=True)
    program.end()

print(f"{len(_plants.LEAKS) + 2} leaks found; CUDA memory is not among them yet")
