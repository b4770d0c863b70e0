#!/usr/bin/env python3
# needs: comfyui root deb:podman deb:runc
# long
# timeout: 600
"""The pack starts ComfyUI again, under memstow, in a container of Podman: an image with an entry point in its
Containerfile, with Podman's own limits on system calls and capabilities. The image needs no registry: it is empty but
for the entry point, and has this machine's system and ComfyUI as volumes. `podman restart` starts ComfyUI under memstow
once more; SIGINT closes it in order."""
import atexit, json, os, pathlib, shlex, subprocess, sys

import support
from _comfy import AGAIN, install_pack
from _places import Direct

STORE = ["--root", support.HERE / "store", "--runroot", support.HERE / "run", "--storage-driver", "vfs",
         "--cgroup-manager", "cgroupfs", "--runtime", "runc"]
NAME = f"memstow-{os.getpid()}"
data = support.HERE / "data"
for name in ("custom_nodes", "models", "input", "output", "user"):
    (data / name).mkdir(parents=True)
install_pack(data)
web = support.HERE / "web" # Direct puts ComfyUI's page there
web.mkdir()


def podman(*words, **options):
    return support.run("podman", *STORE, *words, timeout=200, **options)


(support.HERE / "image").mkdir()
(support.HERE / "image/entrypoint").write_text(
    f'#!/bin/sh\nset -e\nexec {shlex.quote(sys.executable)} {shlex.quote(str(support.COMFYUI / "main.py"))} "$@"\n')
(support.HERE / "image/entrypoint").chmod(0o755)
(support.HERE / "image/Containerfile").write_text(f"""FROM scratch
COPY entrypoint /entrypoint
ENV MEMSTOW=1 MEMSTOW_COMMAND={support.MEMSTOW} PYTHONPATH={support.ROOT}/tests:{support.ROOT}/tests/comfyui/_direct
WORKDIR {data}
ENTRYPOINT ["/entrypoint", "--base-directory", "{data}"]
""")
atexit.register(lambda: subprocess.run(["podman", *map(str, STORE), "rm", "-f", "-t", "0", NAME], capture_output=True))
tried = podman("build", "--network", "none", "-t", "comfyui", support.HERE / "image", status=None)
if tried.returncode:
    support.skip(f"podman can build no image here: {tried.stderr.strip()[-300:]}")
limits = ["--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
tried = podman("run", "--rm", *limits, "-v", "/usr:/usr:ro", "-v", "/lib64:/lib64:ro", "-v", "/lib:/lib:ro",
               "--entrypoint", "/usr/bin/true", "comfyui", status=None)
if tried.returncode:
    support.skip(f"podman can run no container here: {tried.stderr.strip()[-300:]}")

places = {"/usr", "/bin", "/lib", "/lib64", "/etc", sys.base_prefix, *(os.path.realpath(path) for path in (
    support.ROOT, sys.prefix, support.COMFYUI, support.BUILD))}
volumes = [word for place in sorted(places) for word in ("-v", f"{place}:{place}:ro")]


def first(_pid=None):
    """The pid of the container's process 1, as it is outside."""
    return int(podman("inspect", "--format", "{{.State.Pid}}", NAME).stdout)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if ":\t" in line)


comfy = Direct("container", ["podman", *STORE, "run", "--name", NAME, *limits, *volumes, "-v", f"{web}:{web}:ro",
                             "-v", f"{data}:{data}", "comfyui"], support.HERE, {}, first)
assert comfy.is_tracked(), comfy.log()
status = status_of(comfy.pid)
assert status["NSpid"].split()[-1] == "1" and status["Seccomp"] == "2", status # seccomp: a filter
assert int(status["CapEff"], 16) != int(status_of("self")["CapEff"], 16), status
ledger, = data.glob("memstow.python*.1.mst")

podman("restart", "--time", "1", NAME)
support.wait_for(lambda: comfy.get("/system_stats"), 200, "ComfyUI answering again")
again = first()
assert again != comfy.pid and str(support.LIBRARY) in pathlib.Path(f"/proc/{again}/maps").read_text()
assert podman("logs", NAME).stderr.count(AGAIN) == 2 and comfy.get("/memstow/owners") is not None
podman("kill", "--signal", "INT", NAME)
support.wait_for(lambda: not pathlib.Path(f"/proc/{again}").exists(), 100, "the end of ComfyUI")
assert (data / "output/memstow/shutdown.log").exists(), podman("logs", NAME).stderr[-3000:]
report = json.loads(support.memstow("report", "--json", ledger).stdout)
assert report["process"]["pid"] == 1 and report["totals"]["allocated_bytes"], report["process"]
