# needs: cc
# timeout: 300
"""Twelve programs that leak as real ones did, and three that do so in C and C++, one of them on a CUDA device (simulated, a test
double): each leak is found in a process that runs, in
a snapshot and in a series, and blamed on the right owner and call stack; and nothing else is found."""
import json, sys

import support
from _leaks import HERE, Program, brief, functions, leaks, plant

sys.path[:0] = [str(HERE), str(HERE.parent / "cuda")]
import _plants, _simulated # noqa: E402

RUNS = 14


def check(document, node, model, function, retired, where, on_cuda=False):
    assert document["leaks"], f"{where}: nothing found: {json.dumps(document['not_leaks'])}"
    for leak in document["leaks"]:
        assert (leak["node"], leak["model"]) == (node, model), (where, brief(document))
        assert function in functions(leak["stack"])[:4] and leak["on_cuda"] is on_cuda, (where, brief(document))
        assert leak["bytes_per_run"] >= 4096 and leak["confidence"] in ("medium", "high"), (where, leak)
    gone = [r for r in document["retired"] if r["leak"]]
    assert bool(gone) == retired, (where, brief(document))
    for owner in gone:
        assert owner["name"] == model and function in functions(owner["sites"][0]["stack"])[:2], (where, owner)
        assert any("finalize" in holder for holder in owner["holders"]), (where, owner)


def look(program, name, node, model, function, retired, thoroughly, on_cuda=False):
    """While it runs; and in a snapshot, and what is said for people names owner and function."""
    pid = program.pid()
    check(leaks(pid), node, model, function, retired, f"{name}, live", on_cuda)
    if not thoroughly:
        return
    support.memstow("snapshot", pid, "-o", f"{name}.mst")
    check(leaks(f"{name}.mst"), node, model, function, retired, f"{name}, snapshot", on_cuda)
    text = support.memstow("leaks", f"{name}.mst", status=1).stdout
    assert (model or node) in text and function.split("(")[0] in text and ("memory of CUDA devices" in text) is on_cuda, text
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

binary = support.HERE / "device_memory"
support.run("cc", "-O1", "-g", f"-I{support.ROOT}/preload", HERE / "_device_memory.c", "-o", binary,
            _simulated.LIBRARIES / "libcuda.so.1", "-Wl,--allow-shlib-undefined")
program = Program(binary, RUNS, file="device_memory.ledger", env=_simulated.environment())
program.wait_for("ready")
look(program, "device_memory", "Leaky", None, "back_up_on_device", False, thoroughly=True, on_cuda=True)
found = leaks("device_memory.mst")["leaks"]
assert [leak["bytes_per_run"] for leak in found] == [96 << 10], brief(leaks("device_memory.mst"))
program.end()

print(f"{len(_plants.LEAKS) + 3} leaks found, one of them on a simulated CUDA device")
