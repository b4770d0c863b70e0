#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
"""A loop with a prefix, killed four times: it goes on from the last committed iteration, to the same result, with one set of files. Two
loops of one prefix at a time are refused, and so is a prefix that leads elsewhere."""
import pathlib

import _loops_killed
from _loops import Loops, counter

_loops_killed.run(4, 7)
with Loops(name="refused") as comfy:
    before = sorted(p for p in pathlib.Path.cwd().rglob("*.state"))
    for prefix in ("../outside", "/tmp/outside", "a/../../b", "..", "x\0y"):
        comfy.refused("", workflows=[counter()], inputs={"n": 1}, persist_prefix=prefix)
    outside = comfy.folder / "elsewhere"
    outside.mkdir()
    (comfy.folder / "user/memstow").mkdir(parents=True, exist_ok=True)
    (comfy.folder / "user/memstow/link.state").symlink_to(outside)
    comfy.refused("", workflows=[counter()], inputs={"n": 1}, persist_prefix="link")
    assert not list(outside.iterdir()) and sorted(p for p in pathlib.Path.cwd().rglob("*.state") if not p.is_symlink()) == before
    slow = {**counter(), "sleep": {"class_type": "Sleepy", "inputs": {"number": ["add", 0], "seconds": 2.0}}}
    slow["out"] = {"class_type": "DiscomfortPort", "inputs": {"unique_id": "n", "input_data": ["sleep", 0]}}
    name = comfy.begin(slow, inputs={"n": 1}, persist_prefix="one", name="first")
    status, words = comfy.post(workflows=[counter()], inputs={"n": 1}, persist_prefix="one", name="second")
    assert status == 400 and "one" in words, (status, words)
    assert comfy.over(name)["values_of_ports"] == {"n": 2}
