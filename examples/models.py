#!/usr/bin/env python3
"""Three models, one run, and what becomes of their memory. Only standard Python is needed, because the models are plain
buffers of numbers. After the run the UNET is freed, the text encoder is kept, and the VAE is stowed: its bytes go to a
file, and come back to the same address when they are used.

    memstow run -o models.mst -- python3 examples/models.py
    memstow report --by=model models.mst
    memstow decisions models.mst"""
import ctypes
import mmap
import pathlib
import random
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools/python"))
import memstow  # noqa: E402

MiB = 2**20
numbers = random.Random(7)


def fill(buffer):
    """Writes weights into all of a buffer."""
    view = memoryview(buffer).cast("B")
    for start in range(0, len(view), MiB):
        view[start:start + MiB] = numbers.randbytes(MiB)
    return buffer


def resident():
    """The resident set of this process."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def checksum(buffer):
    return zlib.crc32(memoryview(buffer).cast("B"))


class Model:
    """A name, weights, and an owner that memory is counted for."""

    def __init__(self, name, policy, make):
        self.policy = policy
        self.owner = memstow.owner(name, origin=f"{name.lower()}.bin", keys=(id(self), 0), policy=policy)
        with self.owner.scope(): # allocations in here are the model's
            self.weights = fill(make())
        self.checksum = checksum(self.weights)

    def drop(self):
        self.weights = None
        self.owner.retire()


def show(moment):
    print(f"{moment:28} RSS {resident() / MiB:6.0f} MiB", flush=True)


if not memstow.active():
    print("memstow is not in this process: nothing will be kept, stowed or freed")
show("at first")
models = [Model("UNET", "free", lambda: bytearray(160 * MiB)),
          Model("CLIP", "keep", lambda: (ctypes.c_uint8 * (64 * MiB))()),
          Model("VAE", "stow", lambda: mmap.mmap(-1, 96 * MiB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))]
by_owner = {model.owner.id: model for model in models}
show("three models loaded")

with memstow.run("picture 1"): # this uses the models
    picture = bytes(sum(model.weights[place] for model in models) & 255 for place in range(0, 1_000_000, 1000))

for model in models:
    model.owner.set_idle(True) # between two runs the models are not in use
before = {model.owner.id: model.owner.figures() for model in models}
for decision in memstow.decide("run_ended", "picture 1"): # decisions come in the order to apply them
    if decision.action == "free" and decision.owner in by_owner:
        by_owner[decision.owner].drop()
given = memstow.finish() # stows, and returns free memory
show("after the run")

print(f"\n{'model':6} {'policy':7} {'before':>8} {'in memory':>10} {'stowed':>8}")
for model in models:
    now = model.owner.figures()
    print(f"{model.owner.name:6} {model.policy:7} {before[model.owner.id].live_bytes / MiB:5.0f} MiB "
          f"{(now.live_bytes - now.stowed_bytes) / MiB:7.0f} MiB {now.stowed_bytes / MiB:5.0f} MiB")
reasons = {line["owner"]: line["why"] for line in memstow.decisions()[0] if line.get("kind") == "REMAINING"}
for model in models:
    if memstow.active() and model.policy == "stow" and reasons.get(model.owner.id) != "stowed":
        print(f"{model.owner.name} was not stowed: {reasons.get(model.owner.id, 'see `memstow decisions`')}")

print()
for model in models:
    if model.weights is not None:
        model.owner.set_idle(False)
        same = checksum(model.weights) == model.checksum # reading brings stowed memory back
        print(f"{model.owner.name}: checksum {model.checksum:08x} {'still matches' if same else 'IS ANOTHER'}",
              flush=True)
        assert same
show("kept and stowed used again")
