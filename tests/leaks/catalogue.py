# needs: cc
# timeout: 300
"""Sixteen programs leak: twelve Python programs as real ones did, and four in C or C++, two of which use a CUDA device
(simulated, a test double). Each leak is found in the running process and in a snapshot. Then each program goes on, and
leaks outside of runs. A series finds this leak, too. Each finding names the right owner and call stack, and there is no
other finding. Two more programs only look as if they leaked: nothing is found in them."""
import json, signal, sys, time

import support
from _leaks import HERE, Program, brief, functions, leaks, plant, record

sys.path[:0] = [str(HERE), str(HERE.parent / "cuda")]
import _plants, _simulated # noqa: E402

RUNS, READINGS, PACE = 14, 20, 0.3 # seconds: several runs that end while a file is read are one reading


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


class Plant:
    """A program, and the owner and function of its leak."""

    def __init__(self, name, program, model, function, retired=False, on_cuda=False):
        self.name, self.program, self.function = name, program, function
        self.blamed = ("Leaky", model, function, retired)
        self.on_cuda = on_cuda

    def check(self, document, where):
        check(document, *self.blamed, f"{self.name}, {where}", self.on_cuda)

    def look(self):
        """Checks the findings for the running process and for a snapshot, and the text for the snapshot."""
        self.program.wait_for("ready")
        self.check(leaks(self.program.pid()), "live")
        support.memstow("snapshot", self.program.pid(), "-o", f"{self.name}.mst")
        self.check(leaks(f"{self.name}.mst"), "snapshot")
        self.look_at_text(support.memstow("leaks", f"{self.name}.mst", status=None).stdout)

    def look_at_text(self, text):
        assert (self.blamed[1] or "Leaky") in text and self.function.split("(")[0] in text, text
        assert ("memory of CUDA devices" in text) is self.on_cuda and max(map(len, text.split("\n"))) <= 80, text

    def look_at_series(self):
        """A leak outside of runs belongs to no run, so the readings show it."""
        document = leaks(f"{self.name}.series")
        self.check(document, "series")
        assert all(leak["judged_by"] == "readings" for leak in document["leaks"]), (self.name, brief(document))
        assert document["readings"]["judged"] >= 9, (self.name, document["readings"])


class LookAlike(Plant):
    """A program that does not leak. `kept`: freed bytes that the allocator keeps."""

    def __init__(self, name, program, kept=0):
        super().__init__(name, program, None, "")
        self.kept = kept

    def check(self, document, where):
        assert not document["found"], (self.name, where, brief(document))
        retained = document["not_leaks"]["allocator_retained_bytes"]
        assert where == "series" or retained >= self.kept, (self.name, where, retained)

    def look_at_text(self, text):
        assert "No leak found\n" in text and ("freed, and kept by the allocator" in text) >= bool(self.kept), text


def program_of(source, name, *flags, env=None, words=()):
    binary = support.HERE / name
    compiler = "c++" if source.endswith(".cc") else "cc"
    support.run(compiler, "-O1", "-g", "-pthread", f"-I{support.ROOT}/include", HERE / source, "-o", binary, *flags)
    return Program(binary, RUNS, READINGS, *words, file=f"{name}.ledger", env=env)


plants = [Plant(name, plant(name, RUNS, readings=READINGS, file=f"{name}.ledger"), model, function, retired)
          for name, (model, function, retired) in _plants.LEAKS.items()]
plants.append(Plant("thread_locals", program_of("_thread_locals.c", "thread_locals"), None, "remember"))
plants.append(Plant("statics", program_of("_statics.cc", "statics"), None, "note"))
cuda = (_simulated.LIBRARIES / "libcuda.so.1", "-Wl,--allow-shlib-undefined")
plants.append(
    Plant("device_memory", program_of("_device_memory.c", "device_memory", *cuda, env=_simulated.environment()), None,
          "back_up_on_device", on_cuda=True))
plants.append(
    Plant("unload", program_of("_unload.c", "unload", *cuda, env=_simulated.environment(), words=("keep", )), None,
          "copy_out"))
plants.append(LookAlike("unload_once", program_of("_unload.c", "unload_once", *cuda, env=_simulated.environment())))
plants.append(LookAlike("retention", program_of("_retention.c", "retention"), kept=40 << 20))
for one in plants:
    one.look()
found = leaks("device_memory.mst")["leaks"]
assert [leak["bytes_per_run"] for leak in found] == [96 << 10], brief(leaks("device_memory.mst"))

recorders = [record(one.program, f"{one.name}.series") for one in plants]
time.sleep(1) # the first readings
for _ in range(READINGS):
    for one in plants:
        one.program.go_on()
    for one in plants:
        one.program.wait_for("step")
    time.sleep(PACE)
for recorder in recorders:
    recorder.send_signal(signal.SIGTERM)
for one, recorder in zip(plants, recorders):
    assert recorder.wait(30) == (0 if isinstance(one, LookAlike) else 1), one.name
    one.look_at_series()
    one.program.end()

print(f"{len(plants) - 2} leaks found, one of them on a simulated CUDA device, and none in two programs that look as "
      f"if they had one")
