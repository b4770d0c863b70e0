# memstow serves the device memory of models, and moves it out of the device and back. The report is as expected. Each
# case of _moves.c runs by itself, over the simulated driver (a test double).
import json, os, pathlib, re, subprocess, sys

import support
from _simcuda import BUILD, environment, refusals, run_cases, settings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

program = BUILD / "moves"
folder = _moving.real_disk()
KILLED = ("killed_on_the_way_out", "killed_on_the_way_back")

run_cases("moves", 35, lambda case: settings(case, folder), killed=KILLED, without=("asked",))

# MEMSTOW_CUDA_TOTAL=1: the ledger has the device's total, as the program sees it.
total = support.report("total_stays.mst")["cuda"]["devices"][0]["total_bytes"]
assert total == 128 << 20, total

# Requests from outside stow the model, and bring it back.
process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "asked.mst", "--", program, "asked",
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                        env=environment(MEMSTOW_CUDA_MOVES="2M"))
said = process.stdout.readline()
assert said == "loaded\n", said
pid = next(p["pid"] for p in json.loads(support.memstow("ps", "--json").stdout)["processes"]
           if p["file"] == os.path.abspath("asked.mst"))


def metrics(name, labels):
    """The values of the samples of this process in `memstow metrics` that have this name and these further labels."""
    pattern = rf'^{name}\{{pid="{pid}",process="[^"]*",{labels}\}} (\d+)$'
    return [int(number) for number in re.findall(pattern, support.memstow("metrics", pid).stdout, re.MULTILINE)]


def metrics_are_as_reported(live, on_host):
    """`memstow metrics` agrees with the report about the device memory of the model and of the device, and about the
    host memory that holds the content of devices."""
    document = support.report(str(pid))
    [unet] = [owner for owner in document["owners"] if owner["name"] == "unet"]
    [device] = document["cuda"]["devices"]
    assert metrics("memstow_model_device_bytes", 'model="unet",origin="[^"]*"') == [15 << 20] == [unet["cuda_bytes"]]
    assert metrics("memstow_device_live_bytes", 'device="0"') == [live] == [device["live_bytes"]], device
    held = document["residency"]["device_stowed_bytes"]
    assert metrics("memstow_resident_bytes", 'part="from_devices"') == [held] and held >= on_host, (held, on_host)


metrics_are_as_reported(23 << 20, 0)
moved = support.memstow("stow", pid, "unet").stdout
assert "14.0 MiB" in moved, moved
metrics_are_as_reported(23 << 20, 14 << 20)
unet = json.loads(support.memstow("owners", pid, "--json").stdout)["owners"][0]
assert unet["device_stowed_bytes"] == 14 << 20 and unet["cuda_bytes"] == 15 << 20, unet
moved = support.memstow("restore", pid, "unet").stdout
assert "14.0 MiB" in moved, moved
said = process.communicate(timeout=60)[0]
assert (said, process.returncode) == ("ok\n", 0), (said, process.returncode)

# memstow says once that served memory cannot be exported, and names the setting that allows it.
done = support.track(program, "exports", env=environment(MEMSTOW_CUDA_MOVES="2M"), file="exports2.mst")
assert done.stderr.count("cuIpcGetMemHandle") == done.stderr.count("MEMSTOW_CUDA_IPC=1") == 1, done.stderr

# Each reason why memory is not served, with the amount.
below = ("it is smaller than MEMSTOW_CUDA_MOVES, or it is in an explicit pool, made by a library, "
         "kept for IPC, allocated outside of the model's load phases, or in a block of another owner")
kind = "it is managed memory, an array, memory of a graph, or mapped by the program"
assert refusals("not_served.mst") == {below: 5 << 20, kind: 3 << 20}, refusals("not_served.mst")
done = support.track(program, "not_served", env=environment(), file="why.mst")
assert refusals("why.mst") == {"MEMSTOW_CUDA_MOVES is not set": 19 << 20, kind: 3 << 20}, refusals("why.mst")

# Settings that cannot be read count as not set, and the report says so.
for key, word in (("MEMSTOW_CUDA_MOVES", "2m"), ("MEMSTOW_CUDA_MOVES", "64MB"), ("MEMSTOW_CUDA_MOVES", "yes"),
                  ("MEMSTOW_CUDA_HOST", "lots")):
    support.track(program, "off", env=environment(**{key: word}), file="word.mst")
    notes = support.report("word.mst")["process"]["notes"]
    assert any(note.startswith(f"{key} is not a size like") for note in notes), (key, word, notes)

# Triggers decide about a model without host memory, too. The trace has the memory that the model left behind when it
# was retired.
lines = json.loads(support.memstow("decisions", "by_policy.mst", "--check", "--json").stdout)["lines"]
unet = 2
categories = [(line["category"], line["before_bytes"], line.get("device_before_bytes")) for line in lines
              if line["kind"] == "CATEGORY" and line["owner"] == unet]
assert [c[0] for c in categories] == ["blocked", "blocked", "stowed",
                                      "blocked"] and {c[2] for c in categories} == {8 << 20}, categories
assert [line["why"] for line in lines if line["kind"] == "DECISION"
        and line["owner"] == unet] == ["cannot", "cannot", "policy", "retired"], lines

# The ledger of a process that was killed during a move shows where the memory was at that moment.
for name, out in (("killed_on_the_way_out", 0), ("killed_on_the_way_back", 14 << 20)):
    owner = json.loads(support.memstow("owners", f"{name}.mst", "--json").stdout)["owners"][0]
    assert (owner["cuda_bytes"], owner["device_stowed_bytes"]) == (15 << 20, out), (name, owner)
    support.memstow("decisions", f"{name}.mst", "--check")

# Served memory is counted once, at the size that the program requested. memstow's own buffers are not counted.
for name in ("out_and_back", "off", "killed_on_the_way_out", "killed_on_the_way_back"):
    kinds = support.report(f"{name}.mst")["cuda"]["kinds"]
    found = {kind: (sums["live_bytes"], sums["live_blocks"]) for kind, sums in kinds.items() if sums["live_blocks"]}
    assert found == {"device": (17 << 20, 3), "pool": (6 << 20, 1)}, f"{name}: {found}"

for name, because in (("out_and_back", "the owner is not declared idle"),
                      ("no_vram", "no device memory to bring it back to"), ("no_host", "no host memory to move it to"),
                      ("captures", "a stream is being captured")):
    lines = support.memstow("decisions", f"{name}.mst", "--json").stdout
    assert f'"{because}"' in lines, f"{name}: {lines}"

# Unknown pointers are passed on to the driver, and counted.
cuda = support.report("foreign_pointers.mst")["cuda"]
assert cuda["foreign_frees"] == 5 and not cuda["missed_frees"], cuda

# The ledger counts memory that is out as live, but the driver does not use it. `rest_bytes` is the context's 8 MiB, and
# 1 MiB by which `small` is rounded up.
report = support.report("stays_out.mst")
device = report["cuda"]["devices"][0]
assert device["live_bytes"] == 23 << 20 and device["driver_used_bytes"] == 18 << 20, device
assert device["rest_bytes"] == 9 << 20, device
residency, live = report["residency"], support.report("out_and_back.mst")["residency"]
assert residency["device_stowed_bytes"] == 14 << 20 and live["device_stowed_bytes"] == 0, (residency, live)
assert residency["rest_bytes"] <= live["rest_bytes"] + (1 << 20), (residency, live)
unet = next(owner for owner in report["owners"] if owner["name"] == "unet")
assert (unet["stowed_bytes"], unet["device_stowed_bytes"], unet["cuda_bytes"]) == (14 << 20, 14 << 20, 15 << 20), unet
text = support.memstow("report", "stays_out.mst").stdout
assert text.count("14.0 MiB of unet (unet.safetensors): out of the device, in the process's memory") == 1, text
assert "in files" not in text, text
support.memstow("report", "stays_out.mst", "--by=model")
assert not list(folder.iterdir())
folder.rmdir()
