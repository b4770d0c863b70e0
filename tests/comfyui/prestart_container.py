#!/usr/bin/env python3
# needs: comfyui root
# timeout: 400
# long
"""The pack starts ComfyUI again under memstow also if ComfyUI runs in a container. The container's entry point is a
script, which is process 1 of a namespace of its own and `exec`s Python. There is no HOME, and the working folder is on
a read-only file system, so the ledger goes to the folder of temporary files. (unshare makes the namespaces; Docker
itself is not used.) `docker stop` first sends SIGTERM. This has no effect, with or without memstow: the kernel delivers
no SIGTERM to a process 1 without a handler, and ComfyUI has no handler for SIGTERM. SIGINT closes ComfyUI in order."""
import json, os, pathlib, signal, sys

import support
from _comfy import install_pack
from _places import Direct

INSIDE = """
mount --bind app app && mount -o remount,bind,ro app && cd app && ! touch here 2> ../read-only && exec ./entrypoint "$@"
"""
if support.run("unshare", "--pid", "--fork", "--mount-proc", "true", status=None).returncode:
    support.skip("no namespace of processes can be made here")
app, volume, temporary = (support.HERE / name for name in ("app", "volume", "tmp"))
for folder in (app, temporary, *(volume / name for name in ("custom_nodes", "models", "input", "output", "user"))):
    folder.mkdir(parents=True)
install_pack(volume)
(app / "entrypoint").write_text(f'#!/bin/sh\nset -e\nexec "{sys.executable}" "{support.COMFYUI}/main.py" "$@"\n')
(app / "entrypoint").chmod(0o755)


def child_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def handles(pid, number):
    line, = [line for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigCgt")]
    return int(line.split()[1], 16) >> (number - 1) & 1


comfy = Direct("container", ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", INSIDE, "sh",
                             "--base-directory", volume], support.HERE,
               {"MEMSTOW": "1", "MEMSTOW_COMMAND": support.MEMSTOW, "TMPDIR": str(temporary), "HOME": None}, child_of)
assert comfy.is_tracked(), comfy.log()
status = pathlib.Path(f"/proc/{comfy.pid}/status").read_text()
assert [line.split()[-1] for line in status.splitlines() if line.startswith("NSpid")] == ["1"], status
assert "HOME" not in support.environment_of(comfy.pid) and "Read-only" in pathlib.Path("read-only").read_text()
assert f"its ledger is in {temporary}" in comfy.log(), comfy.log()
ledger, = temporary.glob("memstow.python*.1.mst")
assert not handles(comfy.pid, signal.SIGTERM)
os.kill(comfy.pid, signal.SIGTERM)
assert comfy.get("/memstow/owners") is not None
support.interrupt(comfy.started, lambda: os.kill(comfy.pid, signal.SIGINT))
assert (volume / "output/memstow/shutdown.log").exists(), comfy.log()[-3000:]
report = json.loads(support.memstow("report", "--json", ledger).stdout)
assert report["process"]["pid"] == 1 and report["totals"]["allocated_bytes"], report["process"]
