#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""A real ComfyUI under `memstow run` loads a diffusion model, runs a workflow three times, and ends. While it runs, its
report explains the resident set, and agrees with a snapshot. After its end, the report adds up."""
import json, os, pathlib, signal

import support
from _report import check_report, check_residency
from _tiny_model import tiny_wan
from _workflow import prepare, run, sampling


def child_of(process):
    """The process in which the program runs: a child of `memstow run`, or the process of `memstow run` itself."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else process.pid


def check_seen(pid):
    """Asserts that other commands see that the process is tracked, and can take a snapshot of it that agrees with a
    report of the process itself."""
    processes = json.loads(support.memstow("ps", "--json").stdout)["processes"]
    assert [p["name"] for p in processes if p["pid"] == pid] == ["python"], processes
    support.memstow("snapshot", pid, "-o", "taken.mst")
    taken = support.report("taken.mst")
    check_report(taken)
    check_residency(taken)
    now = support.report(pid)["totals"]["live_bytes"]
    assert abs(taken["totals"]["live_bytes"] - now) < 4 * 2**20, "nothing but the server's idle loop ran between"


port, folder = support.free_port(), support.HERE / "comfyui"
command = support.comfyui_command(port, folder)
prepare(folder)
with open("log", "w") as log:
    server = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", *command, stdout=log, stderr=log)
try:
    support.wait_for(lambda: server.poll() is not None or support.http(port, "/system_stats"), 120, "ComfyUI answering")
    for seed in range(3):
        run(port, sampling(seed))
    pid = child_of(server)
    loaded = support.report(pid)
    check_residency(loaded)
    check_seen(pid)
    os.kill(pid, signal.SIGINT)
    assert server.wait(60) in (0, 130), f"ended with status {server.returncode}"
except BaseException:
    print(pathlib.Path("log").read_text()[-4000:])
    raise
assert len(list((folder / "output").glob("tiny*"))) == 3, "one latent a run"
weights = sum(t.numel() * t.element_size() for t in tiny_wan().values())
assert loaded["totals"]["live_bytes"] >= weights, (loaded["totals"], weights)
rest, rss = (loaded["residency"][k] for k in ("rest_bytes", "rss_bytes"))
print(f"{rest} of {rss} resident bytes not explained")
ended = support.report("out.mst")
check_report(ended)
assert ended["totals"]["allocated_bytes"] >= loaded["totals"]["allocated_bytes"]
