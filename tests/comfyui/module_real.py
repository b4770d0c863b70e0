#!/usr/bin/env python3
# needs: torch
# timeout: 300
"""The Python module memstow with the real library, not the double. Scopes of coroutines and threads count to the byte;
assigned buffers, tensors and modules belong to their owner; retired owners give back their memory; errors have the
library's messages. The test runs itself under memstow."""
import asyncio, errno, json, os, sys, threading

if "libmemstow" not in os.environ.get("LD_PRELOAD", ""):
    import support
    support.memstow("run", "--quiet", "-o", "out.mst", "--", support.PYTHON, __file__,
                    env={**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")})
    for command in ("owners", "report"): # the outcome of the runs
        owners = json.loads(support.memstow(command, "out.mst", "--json").stdout)["owners"]
        outcomes = {owner["name"]: owner["outcome"] for owner in owners if owner["kind"] == "run"}
        assert outcomes == {"a run": "ok", "one that fails": "failed", "one without memory": "out-of-memory",
                            "one that is on": None}, outcomes
        assert all(owner["outcome"] is None for owner in owners if owner["kind"] != "run")
    sys.exit()

import torch

import memstow

MB = 2**20
assert memstow.active() and memstow.version() >= (1, 1)


def live(owner):
    return owner.figures().live_bytes


# scopes of this thread, and of coroutines that take turns
first, second = memstow.owner("first"), memstow.owner("second", kind="custom")
node = memstow.owner("node", kind="node")
with first.scope(), node.scope():
    one = bytearray(5 * MB)
    with second.scope():
        other = bytearray(3 * MB)
assert 5 * MB <= live(first) < 5 * MB + 4096 and 3 * MB <= live(second) < 3 * MB + 4096, (live(first), live(second))
assert 8 * MB <= live(node) < 8 * MB + 8192
of_both = {share.model: share.live_bytes for share in memstow.shares() if share.node == node.id}
assert 5 * MB <= of_both[first.id] < 5 * MB + 4096 and 3 * MB <= of_both[second.id] < 3 * MB + 4096, of_both
one = other = None
assert live(first) < 4096 and live(node) < 8192

workers = [memstow.owner(f"worker {i}") for i in range(4)]
kept = {}


async def work(number):
    for step in range(20):
        kept[number, step] = bytearray((number + 1) * 100_000)
        await asyncio.sleep(0.001)


async def all_of_them():
    await asyncio.gather(*(asyncio.create_task(memstow.follow(work(i), owner)) for i, owner in enumerate(workers)))


asyncio.run(all_of_them())
for number, owner in enumerate(workers):
    want = 20 * ((number + 1) * 100_000)
    assert want <= live(owner) < want + 40_000, (number, live(owner), want)
with workers[0].scope():
    carried = memstow.carry(lambda: kept.setdefault("carried", bytearray(7 * MB)))
before = live(workers[0])
thread = threading.Thread(target=carried)
thread.start(), thread.join()
assert 7 * MB <= live(workers[0]) - before < 7 * MB + 4096
kept.clear()
assert all(live(owner) < 40_000 for owner in workers)

# memory that was allocated in no scope, and is assigned
buffer, tensor = bytearray(2 * MB), torch.ones(MB)
module = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.Linear(1024, 16))
model = memstow.owner("assigned", policy="stow", priority=3)
assert memstow.assign(model, buffer) >= 2 * MB
assert memstow.assign(model, [tensor, tensor[10:], module]) == 4 * MB + 4 * (512 * 1024 + 1024 + 1024 * 16 + 16)
want = 2 * MB + 4 * MB + 4 * (512 * 1024 + 1024 + 1024 * 16 + 16)
assert abs(live(model) - want) < 4096, (live(model), want)
assert memstow.assign(model, module) and abs(live(model) - want) < 4096, "assigned twice is counted once"
assert model.figures().policy == "stow" and model.figures().priority == 3
memstow.release_range(tensor)
assert abs(live(model) - want + 4 * MB) < 4096
provisional = memstow.owner("loading")
with provisional.scope():
    loaded = torch.zeros(3 * MB, dtype=torch.uint8)
model.adopt(provisional)
assert abs(live(model) - want + MB) < 8192 and provisional.figures().adopted_by == model.id
model.retire()
del buffer, loaded
module = None
assert live(model) < 8192, live(model)

# a failed call says why
for call, number in ((lambda: memstow.figures(2**20 - 1), errno.ENOENT),
                     (lambda: first.scope().__exit__(), errno.EPERM),
                     (lambda: memstow.assign(first, (16, 10)), errno.ENXIO)):
    try:
        call()
        raise SystemExit("what cannot be was done")
    except memstow.Error as error:
        assert error.errno == number or (number == errno.ENXIO and error.errno == errno.EFAULT), error
        assert len(str(error)) > 20, error
with memstow.run("a run") as run:
    inside = bytearray(MB)
assert run.id and MB <= memstow.figures(run.id).live_bytes < 2 * MB
outputs = []
for name, error in (("one that fails", ValueError), ("one without memory", MemoryError)):
    try:
        with memstow.run(name):
            outputs.append(bytearray(MB))
            raise error
    except error:
        pass
memstow.run("one that is on").begin()
outputs.append(bytearray(MB))
