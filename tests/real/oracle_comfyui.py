#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# long
"""A real ComfyUI starts and runs a workflow with a library that compares each call stack with libunwind's. Some of
NVIDIA's libraries have code without unwind data, where libunwind guesses. There memstow's stack may end earlier than
libunwind's, but then the report must say that callers were unknown."""
import os, pathlib, signal, struct

import support
from _workflow import prepare, run, sampling

library = support.BUILD / "libmemstow_oracle.so"
if not library.exists():
    support.skip("libunwind-dev is not installed")
counts = support.HERE / "counts"
counts.mkdir()
port, folder = support.free_port(), support.HERE / "comfyui"
command = support.comfyui_command(port, folder)
prepare(folder)
env = {**os.environ, "LD_PRELOAD": str(library), "MEMSTOW_ORACLE": str(counts),
       "MEMSTOW_STACK_MEMORY": "64000000", # so that stacks are folded
       "MEMSTOW_OUT": str(support.HERE / "%n.%p.mst")}
with open("log", "w") as log:
    server = support.start(*command, stdout=log, stderr=log, env=env)
try:
    support.wait_for(lambda: server.poll() is not None or support.http(port, "/system_stats"), 2400,
                     "ComfyUI answering")
    run(port, sampling(1), 900)
    os.kill(server.pid, signal.SIGINT)
    assert server.wait(120) in (0, 130), f"ended with status {server.returncode}"
except BaseException:
    print(pathlib.Path("log").read_text()[-4000:])
    raise
figures = [struct.unpack("<3Q", file.read_bytes()[:24]) for file in counts.iterdir()]
compared, wrong, short = (sum(column) for column in zip(*figures))
lost = [support.report(ledger)["lost"] for ledger in support.HERE.glob("python*.mst")]
ended_early, folded = (sum(one[kind] for one in lost) for kind in ("frames", "folded"))
print(f"{compared} stacks, {wrong} wrong, {short} short; {ended_early} times a caller was said to be unknown; "
      f"{folded} folded")
assert compared > 1_000_000 and wrong == 0, pathlib.Path("log").read_text()[-4000:]
assert folded > 100_000, folded
assert not short or ended_early, "stacks end early, and nothing says so"
