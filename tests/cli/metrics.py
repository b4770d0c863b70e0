# needs: deb:prometheus pip:prometheus-client==0.21.1
"""`memstow metrics` gives what `report --json` says, in forms that Prometheus's own tools accept: OpenMetrics on
standard output (read by prometheus-client), and its text format in a file for node_exporter (read by promtool).
Names of the program break neither. Labels are bounded. Each part of the resident memory agrees with the report, also
for a model that was stowed and has been used since. tests/simcuda/moves has the figures of devices."""
import json, os, pathlib, signal, subprocess

from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from support import MEMSTOW, PYTHON, ROOT, memstow, report, run, start

HOSTILE = ['quo"te', "back\\slash", "line\nend", "caf\u00e9 \u2028", "long " * 300, "tab\tbell\a", "a} 1\n# EOF"]
ALIKE = ["same\n", "same\r", "L" * 250 + "a", "L" * 250 + "b", "caf\udce8", "caf\udce9"] # each pair gets one label
PARTS = {"live": "live_bytes", "allocator_overhead": "overhead_bytes", "allocator_free": "retained_bytes",
         "anonymous": "mapped_anonymous_bytes", "program_data": "program_data_bytes", "files": "mapped_file_bytes",
         "stowed": "stowed_resident_bytes", "from_devices": "device_stowed_bytes", "buffers": "device_buffer_bytes",
         "stacks": "stack_bytes", "memstow": "memstow_bytes", "rest": "rest_bytes"} # part → key of the report
pathlib.Path("program.py").write_text(f"""
import mmap, memstow
kept = []
stowed = memstow.owner("stowed", origin="stowed.safetensors")
with stowed.scope():
    away = mmap.mmap(-1, 3 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
away[:] = bytes([7]) * (3 << 20)
stowed.set_idle(True)
assert stowed.stow() == 3 << 20
assert away[:1 << 20] == bytes([7]) * (1 << 20)
for number, name in enumerate({HOSTILE!r}):
    model = memstow.owner(name, origin=f"file{{number}}.safetensors")
    with model.scope():
        kept.append(mmap.mmap(-1, (number + 1) << 20))
for name in {ALIKE!r}:
    model = memstow.owner(name, origin="alike")
    with model.scope():
        kept.append(mmap.mmap(-1, 1 << 20))
model = memstow.owner("(others)")
with model.scope():
    kept.append(mmap.mmap(-1, 64 << 20))
for run in ("one", "two"):
    with memstow.run(run):
        pass
    memstow.decide("run_ended", run)
    memstow.finish()
memstow.decide("request", "by hand")
memstow.finish()
memstow.decide("pressure", "it is on, so its duration is not known")
print("ready", flush=True)
input()
""")
program = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", PYTHON, "program.py", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
assert program.stdout.readline() == "ready\n"
[pid] = [row["pid"] for row in json.loads(memstow("ps", "--json").stdout)["processes"]
         if row["file"] == str(pathlib.Path("x.mst").resolve())]
os.kill(pid, signal.SIGSTOP) # the figures stay as they are


def samples(text, parse):
    """{(name, other labels): value} of the process."""
    found = {}
    for family in parse(text):
        for sample in family.samples:
            labels = dict(sample.labels)
            if int(labels.pop("pid")) != pid:
                continue
            key = sample.name, tuple(sorted(labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def value(found, name, **labels):
    """The sum of the samples with these labels."""
    return sum(number for (of, those), number in found.items() if of == name and labels.items() <= dict(those).items())


text = memstow("metrics", pid).stdout
assert text.endswith("# EOF\n") and text.count("# EOF\n") == 1, text[-200:]
found = samples(text, openmetrics)
document = report(str(pid))
totals, residency = document["totals"], document["residency"]
for kind, key in (("heap", "host"), ("mapped", "mapped")):
    assert value(found, "memstow_live_bytes", kind=kind) == totals[key]["live_bytes"], (kind, totals)
    assert value(found, "memstow_live_blocks", kind=kind) == totals[key]["live_blocks"], (kind, totals)
    assert value(found, "memstow_allocated_bytes_total", kind=kind) == totals[key]["allocated_bytes"], (kind, totals)
assert value(found, "memstow_peak_live_bytes") == totals["peak_bytes"]
assert value(found, "memstow_resident_bytes") == residency["rss_bytes"], (residency, found)
parts = {dict(labels)["part"]: number for (name, labels), number in found.items() if name == "memstow_resident_bytes"}
assert parts == {part: residency[key] for part, key in PARTS.items()}, (parts, residency)
assert {"live", "anonymous", "files", "stacks", "memstow"} <= {part for part, number in parts.items() if number}, parts
assert 1 << 20 <= parts["stowed"] <= 3 << 20, parts # what was used since the move, and what the kernel read with it
everything = [owner for owner in document["owners"] if owner["kind"] == "model"]
models = {owner["origin"]: owner["live_bytes"] for owner in everything if owner["origin"].startswith("file")}
assert len(models) == len(HOSTILE) and all(models.values()), models
for origin, live in models.items():
    assert value(found, "memstow_model_live_bytes", origin=origin) == live, (origin, found)
for owner in everything:
    if owner["origin"] != "alike":
        told, away = value(found, "memstow_model_stowed_bytes", origin=owner["origin"]), owner["stowed_bytes"]
        assert told == away == (3 << 20 if owner["origin"] == "stowed.safetensors" else 0), (owner, told)
assert not [name for name, _labels in found if name in ("memstow_model_device_bytes", "memstow_device_live_bytes")]
assert value(found, "memstow_runs", outcome="ok") == 2 and value(found, "memstow_runs", outcome="failed") == 0
[*_, act] = [line for line in json.loads(memstow("decisions", pid, "--json").stdout)["lines"] if line["kind"] == "ACT"]
assert value(found, "memstow_triggers_total") == 4, found
reasons = {dict(labels)["reason"]: number for (name, labels), number in found.items()
           if name == "memstow_trigger_duration_seconds"}
assert set(reasons) == {"run_ended", "request"} and all(reasons.values()), reasons
assert reasons["request"] == act["took_ns"] / 1e9, (reasons, act)
assert value(found, "memstow_trigger_given_bytes", reason="request") == act["given_bytes"], (found, act)
shown = {dict(labels)["model"] for name, labels in found if name == "memstow_model_live_bytes"}
assert {'quo"te', "back\\slash", "line?end", "caf\u00e9 \u2028", "a} 1?# EOF"} <= shown, shown
assert all(len(name.encode()) < 210 for name in shown), shown
alike = {dict(labels)["model"]: number for (name, labels), number in found.items()
         if name == "memstow_model_live_bytes" and dict(labels)["origin"] == "alike"}
assert alike == {"same?": 2 << 20, "L" * 200: 2 << 20, "caf?": 2 << 20}, alike

# The largest models are listed by name. All others are one row, "(others)"; a model with that name counts there, too.
total = sum(owner["live_bytes"] for owner in everything)
few = samples(memstow("metrics", pid, "--models=3").stdout, openmetrics)
rows = {dict(labels)["model"]: number for (name, labels), number in few.items() if name == "memstow_model_live_bytes"}
assert len(rows) == 3 and rows["(others)"] == total - sum(sorted(models.values())[-2:]), (rows, models)
least = samples(memstow("metrics", pid, "--models=0").stdout, openmetrics)
assert value(least, "memstow_model_live_bytes", model="(others)") == total == value(few, "memstow_model_live_bytes")

# The file for node_exporter has the same figures. promtool accepts it.
os.mkdir("collector")
memstow("metrics", "--all", "--textfile=collector")
memstow("metrics", "--all", "--textfile=collector")
assert os.listdir("collector") == ["memstow.prom"]
written = pathlib.Path("collector/memstow.prom").read_text()
again = samples(written, prometheus)
changing = "memstow_resident_bytes" # looking at a process touches pages of its ledger
assert {k: v for k, v in again.items() if k[0] != changing} == {k: v for k, v in found.items() if k[0] != changing}
for text in (written, memstow("metrics", pid, "--format=prometheus").stdout):
    lint = run("promtool", "check", "metrics", input=text, status=None)
    assert lint.returncode == 0 and not lint.stdout and not lint.stderr, lint

# Invalid requests: each gives one message, and no file.
for words, status in ((["metrics"], 2), (["metrics", "--all", pid], 2), (["metrics", "x.mst"], 2),
                      (["metrics", pid, "--models=x"], 2), (["metrics", pid, "--format=json"], 2),
                      (["metrics", pid, "--format=prometheus", "--textfile=."], 2),
                      (["metrics", pid, "--textfile="], 2),
                      (["metrics", os.getpid()], 3), (["metrics", pid, "--textfile=nowhere"], 3)):
    done = memstow(*words, status=status)
    assert not done.stdout and done.stderr.startswith("memstow: ") and done.stderr.count("\n") == 1, (words, done)
os.kill(pid, signal.SIGCONT)
program.communicate("\n", timeout=60)
assert program.returncode == 0
