# Tests where models go when they leave a device: to pinned memory, ordinary memory and a disk, each within its limit.
# Also tests disks that fail, a kill during a move, and a fork while a model is out. Each case of _backups.c runs by
# itself, over the simulated driver (a test double).
import errno, json, os, pathlib, re, sys

import support
from _simcuda import BUILD, environment

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

program = BUILD / "backups"
names = support.run(program, env=environment()).stdout.split()
assert len(names) == 19, names
folder = _moving.real_disk()
DISK = {"MEMSTOW_CUDA_HOST": "12M", "MEMSTOW_CUDA_DISK": "40M", "MEMSTOW_STOW_DIR": str(folder)}


def case(name, *arguments, status=0, file=None, **wish):
    wish = {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_AHEAD": "0", "MEMSTOW_CUDA_VERIFY": "1",
            "SIMCUDA_CAPACITY": "64M", **wish}
    done = support.track(program, name, *arguments, env=environment(**wish), file=file or f"{name}.mst", status=None)
    assert done.returncode == status, f"{name} {arguments} {wish}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert not list(folder.iterdir()), f"{name}: {list(folder.iterdir())}"


def because(name):
    lines = json.loads(support.memstow("decisions", f"{name}.mst", "--json").stdout)["lines"]
    return {line["because"] for line in lines if line["kind"] == "REFUSED"}


case("pinned", MEMSTOW_CUDA_PINNED="24M")
kept = support.report("pinned.mst")["residency"] # 20 MiB that stay pinned without content, and buffers for copies
with_copy = 10 << 20 if "SIMCUDA_KEEP" in os.environ else 0 # the kept copy of the second model; the first was freed
assert kept["device_buffer_bytes"] >= 20 << 20 and kept["device_stowed_bytes"] == with_copy, kept
case("pinned_makes_room", MEMSTOW_CUDA_PINNED="24M", MEMSTOW_CUDA_HOST="24M")
case("pinned_under_pressure", MEMSTOW_CUDA_PINNED="40M")
case("not_pinned")
case("not_pinned", MEMSTOW_CUDA_PINNED="0", MEMSTOW_CUDA_DISK="0", file="zero.mst")
assert not support.report("zero.mst")["process"]["notes"], "0 is no unknown word"

def told(name, kind, *keys):
    lines = json.loads(support.memstow("decisions", f"{name}.mst", "--json").stdout)["lines"]
    return [tuple(line[key] for key in keys) for line in lines if line["kind"] == kind]


case("kept", MEMSTOW_CUDA_KEEP="24M", MEMSTOW_CUDA_VERIFY="0")
assert told("kept", "UNCHANGED", "bytes", "cuda_error") == [(20 << 20, 0)] * 2, told("kept", "UNCHANGED", "bytes")
case("kept_without_kernels", MEMSTOW_CUDA_KEEP="24M", MEMSTOW_CUDA_VERIFY="0")
refused = told("kept_without_kernels", "UNCHANGED", "bytes", "cuda_error")
assert refused == [(0, 222), (0, 801)], refused # then it is not tried again in this context
case("discarded", MEMSTOW_CUDA_HOST="12M")
assert told("discarded", "DISCARDED", "bytes") == [(20 << 20, )], told("discarded", "DISCARDED", "bytes")
case("discarded_later")
case("cannot_be_pinned", MEMSTOW_CUDA_PINNED="24M")
case("to_disk", **DISK)
case("file_limit", **DISK)
assert because("file_limit") == {"the disk is too full for it"}, because("file_limit")
case("unreadable", **DISK)
case("killed", status=137, **DISK)
case("forked")
case("forked", **DISK)
case("forked", MEMSTOW_CUDA_PINNED="24M")
children = list(support.HERE.glob("forked.mst.*"))
assert children, "the child's ledger"
for child in children: # they have none of the parent's device memory
    seen = support.report(child.name)
    assert not seen["totals"]["cuda"]["live_bytes"], child
    assert not any(owner["stowed_bytes"] for owner in seen["owners"]), child

# Memory that fits nowhere stays on the device.
for file, why, answer, wish in (("nowhere", "no host memory to move it to", -errno.ENOMEM,
                                 {"MEMSTOW_CUDA_HOST": "12M"}),
                                ("too_large", "no host memory to move it to", -errno.ENOMEM,
                                 {**DISK, "MEMSTOW_CUDA_DISK": "19M"}),
                                ("no_folder", "there is no usable directory to move it to", -errno.ENOTSUP,
                                 {**DISK, "MEMSTOW_STOW_DIR": str(support.HERE / "not there")}),
                                ("in_memory", "there is no usable directory to move it to", -errno.ENOTSUP,
                                 {**DISK, "MEMSTOW_STOW_DIR": "/dev/shm"})):
    case("refused", answer, file=f"{file}.mst", **wish)
    assert because(file) == {why}, (file, because(file))

case("whose_reason", **{**DISK, "MEMSTOW_STOW_DIR": str(support.HERE / "not there")})

# The report shows where each model is, and explains all memory. A model on a disk has hardly any memory.
case("stays_out", MEMSTOW_CUDA_VERIFY="0")
residency = support.report("stays_out.mst")["residency"]
assert residency["device_stowed_bytes"] == 30 << 20, residency
assert residency["device_buffer_bytes"] == 20 << 20, residency # buffers for copies
text = support.memstow("report", "stays_out.mst").stdout
assert "moved out of devices" in text and "pinned buffers for devices (memstow's)" in text, text
case("stays_out", file="on_disk.mst", **{**DISK, "MEMSTOW_CUDA_VERIFY": "0"})
there = support.report("on_disk.mst")["residency"]
assert 10 << 20 <= there["device_stowed_bytes"] < 12 << 20, there
assert abs(there["rest_bytes"] - residency["rest_bytes"]) < 4 << 20, (there, residency)

# The trace has each reason why memory does not leave, and how much stays. If parts of a block belong to other owners,
# the trace names these owners.
case("others_know")
trace = json.loads(support.memstow("decisions", "others_know.mst", "--check", "--json").stdout)
owner = {o["name"]: o["id"] for o in trace["owners"]}


def refusals(trace):
    return [(line["owner"], line["because"].split(" (")[0], line["bytes"], sorted(line.get("with", [])))
            for line in trace["lines"] if line["kind"] == "REFUSED"]


refused = refusals(trace)
HANDLE, EXPORTED, RDMA, MIXED = ("its handle was handed out", "it was exported to another process or device",
                                 "it was set up for other devices' direct access",
                                 "parts of a block belong to other owners")
block = 2 << 20
assert sorted(refused, key=str) == sorted([
    (owner["handle"], HANDLE, block, []), (owner["range"], EXPORTED, block, []), (owner["attribute"], RDMA, block, []),
    (owner["token"], RDMA, block, []), (owner["mixed"], MIXED, block, sorted([owner["all"], owner["vae"]])),
    (owner["all"], HANDLE, block, []), (owner["all"], MIXED, block, [owner["vae"]])], key=str), refused
text = support.memstow("decisions", "others_know.mst").stdout
assert re.search(r"parts of a block belong to other owners \((all, vae|vae, all)\)", " ".join(text.split())), text

case("two_reasons", MEMSTOW_CUDA_HOST="12M")
trace = json.loads(support.memstow("decisions", "two_reasons.mst", "--check", "--json").stdout)
who = trace["owners"][0]["id"]
assert refusals(trace) == 2 * [(who, HANDLE, block, []),
                               (who, "no host memory to move it to", 20 << 20, [])], refusals(trace)

# A setting that is no size counts as not set, and the report says so.
for key in ("MEMSTOW_CUDA_PINNED", "MEMSTOW_CUDA_DISK", "MEMSTOW_CUDA_KEEP"):
    case("not_pinned", file="word.mst", **{key: "much"})
    notes = support.report("word.mst")["process"]["notes"]
    assert any(note.startswith(f"{key} is not a size like") for note in notes), (key, notes)
folder.rmdir()
