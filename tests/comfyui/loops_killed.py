#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""A loop with a prefix is killed twice. Each time it goes on from its last committed iteration. In the end it has the
same result as a loop that nobody killed, and one set of files. A loop is refused if another loop has its prefix, in the
same ComfyUI or in another one. It is also refused if the prefix leads out of the folder, if its files are damaged, or
if its inputs are not those with which the prefix was begun."""
import os, pathlib, shutil, signal

import _loops_killed, support
from _comfy import link
from _loops import Loops, counter, node, port

SLOW = {**counter(), "sleep": node("Sleepy", number=link("add"), seconds=0.5), "out": port("n", "sleep")}


def two_servers(comfy):
    """A second ComfyUI with the same user folder gets a prefix only after the first ComfyUI has let go of it."""
    loop = {"inputs": {"n": 0}, "persist_prefix": "both"}
    with Loops("--user-directory", str(comfy.folder / "user"), name="second") as other:
        comfy.begin(SLOW, iterations=200, name="holder", **loop)
        folder = comfy.folder / "user/memstow/both.state"
        other.refused("another loop has the prefix", "in another process", workflows=[SLOW], iterations=200, **loop)
        seen = comfy.loop("holder", False)["committed"]
        support.wait_for(lambda: comfy.loop("holder", False)["committed"] > seen + 1, 60, "two more iterations")
        assert comfy.request("DELETE", "/memstow/loops?name=holder")[0] == 200
        found = comfy.over("holder")
        assert found["state"] == "cancelled" and found["values_of_ports"] == {"n": found["committed"]}, found
        other.refused("another loop has the prefix", workflows=[SLOW], iterations=200, **loop)
        assert comfy.request("DELETE", "/memstow/loops?name=holder")[0] == 200
        files = sorted(path.name for path in folder.iterdir())
        assert len(files) == 3, files
        more = found["committed"] + 2
        taken = other.loop_of(SLOW, iterations=more, **loop)
        assert taken["resumed_after"] == found["committed"] and taken["values_of_ports"] == {"n": more}, taken
        comfy.ran()
        comfy.refused("another loop has the prefix", workflows=[SLOW], iterations=200, **loop)
        os.kill(other.pid(), signal.SIGKILL)
        other.server.wait(30)
        taken = comfy.loop_of(SLOW, iterations=more + 1, **loop)
        assert taken["resumed_after"] == more and taken["values_of_ports"] == {"n": more + 1}, taken


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
    two_servers(comfy)


_loops_killed.run(2, 7, refusals)
