#!/usr/bin/env python3
# needs: comfyui root
# timeout: 400
"""The disk that a loop's values lie on is full: the loop ends, its message names iteration, workflow, node and reason;
the state is the last committed one; nothing temporary is left when the loop is forgotten, and the next loop runs."""
import os, sys

import support
from _comfy import link
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
        assert f"iteration {found['iteration']}, workflow 1: node latent (DiscomfortPort)" in found[
            "error"] and "disk is full" in found["error"], found
        size = 300 * found["committed"]
        assert found["values_of_ports"]["n"] == size and found["values_of_ports"]["latent"]["samples"]["shape"] == [
            1, 4, size, size], found
        assert comfy.request("DELETE", "/memstow/loops?name=full")[0] == 200
        support.wait_for(lambda: os.statvfs(disk).f_bfree == free, 30, "the disk as it was")
        assert comfy.loop_of(counter(), inputs={"n": 1}, use_ram=False)["values_of_ports"] == {"n": 2}
