#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""A loop with a prefix is killed twice. It goes on from the last committed iteration, to the same result, with one set
of files. These are refused: two loops of one prefix at the same time, a prefix outside of the folder, damaged files,
and other inputs than the prefix was begun with."""
import pathlib, shutil

import _loops_killed
from _comfy import link
from _loops import counter, node, port


def refusals(comfy):
    comfy.ran()
    before = sorted(pathlib.Path.cwd().rglob("*.state"))
    for prefix in ("../outside", "/tmp/outside", "a/../../b", "..", "x\0y"):
        comfy.refused("prefix", workflows=[counter()], inputs={"n": 1}, persist_prefix=prefix)
    outside = comfy.folder / "elsewhere"
    outside.mkdir()
    (comfy.folder / "user/memstow/link.state").symlink_to(outside)
    comfy.refused("link", workflows=[counter()], inputs={"n": 1}, persist_prefix="link")
    (comfy.folder / "user/memstow/link.state").unlink()
    assert not list(outside.iterdir()) and sorted(pathlib.Path.cwd().rglob("*.state")) == before
    slow = {**counter(), "sleep": node("Sleepy", number=link("add"), seconds=2.0), "out": port("n", "sleep")}
    name = comfy.begin(slow, inputs={"n": 1}, persist_prefix="one", name="first")
    status, words = comfy.post(workflows=[counter()], inputs={"n": 1}, persist_prefix="one", name="second")
    assert status == 400 and "one" in words, (status, words)
    assert comfy.over(name)["values_of_ports"] == {"n": 2}
    comfy.ran()
    comfy.refused("another value of n", workflows=[slow], inputs={"n": 5}, iterations=2, persist_prefix="one")
    shutil.copytree(comfy.folder / "user/memstow/one.state", comfy.folder / "user/memstow/damaged.state")
    with open(comfy.folder / "user/memstow/damaged.state/manifest", "r+b") as file:
        file.truncate(100)
    comfy.refused("damaged", workflows=[counter()], inputs={"n": 1}, persist_prefix="damaged")


_loops_killed.run(2, 7, refusals)
