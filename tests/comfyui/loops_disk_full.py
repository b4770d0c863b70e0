#!/usr/bin/env python3
# needs: comfyui root
# timeout: 400
# long
"""If the disk for a loop's values is full, the loop fails. In this test the disk becomes full during a put of a loop
without a prefix, and before a commit of a loop with a prefix. The loop's message names iteration, workflow, node and
reason. The loop keeps the values of its last committed iteration, and no temporary file is left. The next loop runs.
When the disk has space again, the failed loop with a prefix can be started again, and goes on where it was."""
import os, pathlib, shutil, sys

import support
from _comfy import link
import _loops
from _loops import Loops, counter, node, port

sys.path.insert(0, str(support.ROOT / "tests/stow"))
import _moving

GROW = {"in": port("n"), "add": node("AddInts", a=link("in"), b=300), "new": node("NewLatent", size=link("add")),
        "latent": port("latent", "new"), "out": port("n", "add")} # 1.4, 5.8, 13, 23 MB

with _moving.mounted("ext4", 24, "small") as disk:
    with Loops(env={"MEMSTOW_STOW_DIR": str(disk)}) as comfy:
        free = os.statvfs(disk).f_bfree
        found = comfy.loop_of(GROW, inputs={"n": 0}, iterations=10, use_ram=False, name="full", state="failed")
        assert found["committed"] == found["iteration"] - 1 >= 2, found
        assert f"iteration {found['iteration']}, workflow 1: node latent (DiscomfortPort)" in found["error"], found
        assert "disk is full" in found["error"], found
        size = 300 * found["committed"]
        values = found["values_of_ports"]
        assert values["n"] == size and values["latent"]["samples"]["shape"] == [1, 4, size, size], found
        assert comfy.request("DELETE", "/memstow/loops?name=full")[0] == 200
        support.wait_for(lambda: os.statvfs(disk).f_bfree == free, 30, "the disk as it was")
        assert comfy.loop_of(counter(), inputs={"n": 1}, use_ram=False)["values_of_ports"] == {"n": 2}

# With a prefix: in the third iteration a second workflow fills the disk with files, so that the commit can create no
# file. Filling the disk's blocks would not be enough, because the file system always finds one more block.
_loops.NODES += """
import os
@node((), True, number=INT, path=STRING)
def FillDisk(self, number, path):
    os.mkdir(path)
    try:
        for count in range(10**6): open(f"{path}/{count}", "w").close()
    except OSError: pass
    return ()
NODE_CLASS_MAPPINGS["FillDisk"] = FillDisk
"""
folder = pathlib.Path("prefixed/user")
folder.mkdir(parents=True)
with _moving.mounted("ext4", 24, str(folder / "memstow")) as disk:
    with Loops(name="prefixed") as comfy:
        filler = disk / "filler"
        fill = {"in": port("n"), "fill": node("FillDisk", number=link("in"), path=str(filler))}
        loop = {"inputs": {"n": 0}, "iterations": 4, "persist_prefix": "some/full", "name": "full",
                "when": [None, {"port": "n", "op": "==", "value": 3}]}

        def tell():
            """The files of the loop, and the free blocks and inodes."""
            found = {path.name: path.stat().st_size for path in (disk / "some").rglob("*") if path.is_file()}
            return found, os.statvfs(disk).f_bfree, os.statvfs(disk).f_ffree

        found = comfy.loop_of(counter(), fill, state="failed", **loop)
        error = found["error"]
        assert "iteration 3, workflow 1: node out (DiscomfortPort): the values cannot be kept" in error, found
        assert "the disk is full" in error, found
        assert found["committed"] == 2 and found["values_of_ports"] == {"n": 2}, found
        files, _blocks, inodes = tell() # the inode of the value that was put is free again
        names = sorted(name.split(".")[0] for name in files)
        assert inodes == 1 and names == ["lock", "manifest", "memstow%3A%20the%20inputs", "n"], files
        shutil.rmtree(filler)
        before = tell()[1:]
        found = comfy.loop_of(counter(), state="done", **{**loop, "when": None})
        assert found["resumed_after"] == 2 and found["values_of_ports"] == {"n": 4}, found
        assert sorted(name.split(".")[0] for name in tell()[0]) == sorted(name.split(".")[0] for name in files)
        assert tell()[1:] == before, (tell(), before)
        # a value that is too large for the disk
        large = {"inputs": {"n": 0}, "iterations": 10, "persist_prefix": "some/large", "name": "large"}
        found = comfy.loop_of(GROW, state="failed", **large)
        size = 300 * found["committed"]
        assert f"iteration {found['iteration']}, workflow 1: node latent (DiscomfortPort)" in found["error"], found
        assert "disk is full" in found["error"] and size >= 600, found
        assert found["values_of_ports"]["n"] == size, found
        held = {path.name: path.stat().st_size for path in (disk / "some/large.state").iterdir()}
        used = (before[0] - tell()[1]) * os.statvfs(disk).f_frsize
        assert len(held) == 5 and used <= sum(held.values()) + 100_000, (held, used)
        comfy.request("DELETE", "/memstow/loops?name=large")
    assert {path.name for path in (disk / "some/large.state").iterdir()} == held.keys() - {"lock"}
