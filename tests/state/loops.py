#!/usr/bin/env python3
"""Runs a loop of 120 iterations, with a trigger after each iteration. Live memory stays the same, no call stack or
descriptor is added, `memstow leaks` finds nothing, and the report names the values. Afterwards values are moved by a
trigger with a policy, and by `memstow stow` from outside."""
import json

import _state, support

folder = _state.real_disk()
said = _state.python("""
    import json, subprocess, threading
    store = memstow_state.open("refine")
    model = memstow.owner("UNET")
    figures = []
    for step in range(1, 121):
        with memstow.run(f"prompt {step}"):
            before = store.get("latent", b"")
            store.begin(); store.put("latent", bytearray(3_000_000))
            store.put("step", step); store.put("text", "x" * step)
            assert store.commit() == step
        memstow.trigger()
        if step % 10 == 0:
            memstow.snapshot(f"at{step}.mst")
            figures.append([len(os.listdir("/proc/self/fd"))])
    store.set_policy("stow", id="latent")
    memstow.trigger()
    print(json.dumps([figures, {row["id"]: row["where"] for row in store.info()}]))
    command = [os.environ["MEMSTOW"], "stow", str(os.getpid()), "state:refine/step"]
    untracked = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, capture_output=True, text=True, env=untracked)
    assert done.returncode == 1 and store.get("step") == 120, done
    assert any("moved by the program's threads only" in str(line.get("because")) for line in memstow.decisions()[0]), \
        "the trace says nothing"

    def answer():
        request = memstow.next_request(60)
        memstow.answer(request, memstow.stow(request.owner))
    memstow.next_request(-1)  # from now on they are the program's
    answering = threading.Thread(target=answer)
    answering.start()
    owner = next(row["owner"] for row in store.info() if row["id"] == "step")
    done = subprocess.run(command, capture_output=True, text=True, env=untracked)
    answering.join()
    assert done.returncode == 0, done.stdout + done.stderr
    assert memstow.figures(owner).stowed_bytes == 4096 and store.get("step") == 120
    assert store.get("latent") == bytearray(3_000_000)
    owners = subprocess.run([os.environ["MEMSTOW"], "owners", str(os.getpid()), "--json"],
                            capture_output=True, text=True, env=untracked).stdout
    row = next(row for row in json.loads(owners)["owners"] if row["name"] == "state:refine/latent")
    assert row["kind"] == "state" and row["policy"] == "stow" and row["stowed_bytes"] == row["live_bytes"], row
    lines = [line for line in memstow.decisions()[0] if "state" in json.dumps(line)]
    assert lines, "no decision names a state"
    """, folder).stdout
figures, places = json.loads(said.splitlines()[0])
assert places == {"latent": "stowed", "step": "ram", "text": "ram"}, places
assert figures[2:] == figures[2:3] * len(figures[2:]), figures
reports = [support.report(f"at{step}.mst") for step in range(20, 121, 10)]
live = [report["totals"]["live_bytes"] for report in reports]
assert max(live) - min(live) < 100_000, live
assert len({len(report["sites"]) for report in reports}) == 1
for report in reports:
    states = {owner["name"]: owner["live_bytes"] for owner in report["owners"] if owner["kind"] == "state"}
    assert states == {"state:refine/latent": 3_006_464, "state:refine/step": 4096, "state:refine/text": 4096}, states
found = support.memstow("leaks", "--json", *(f"at{step}.mst" for step in range(10, 121, 10)), status=None)
assert "refine" not in json.dumps([leak for leak in json.loads(found.stdout).get("leaks", [])]), found.stdout
assert not list(folder.iterdir())
folder.rmdir()
