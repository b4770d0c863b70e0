"""The pack in a container: it starts ComfyUI again, under memstow. The image is built without a registry, because it
contains only an entry point. The container has this machine's system and ComfyUI as volumes. The engine's own limits on
system calls and capabilities apply."""
import json, os, pathlib, shlex, sys

import support
from _comfy import AGAIN, install_pack
from _places import Direct

NAME = f"memstow-{os.getpid()}"


def build_image(engine, data):
    folder = support.HERE / "image"
    folder.mkdir()
    (folder / "entrypoint").write_text(
        f'#!/bin/sh\nset -e\nexec {shlex.quote(sys.executable)} {shlex.quote(str(support.COMFYUI / "main.py"))} "$@"\n')
    (folder / "entrypoint").chmod(0o755)
    (folder / "Containerfile").write_text(f"""FROM scratch
COPY entrypoint /entrypoint
ENV MEMSTOW=1 MEMSTOW_COMMAND={support.MEMSTOW} PYTHONPATH={support.ROOT}/tests:{support.ROOT}/tests/comfyui/_direct
WORKDIR {data}
ENTRYPOINT ["/entrypoint", "--base-directory", "{data}"]
""")
    return support.run(*engine, "build", "--network", "none", "-t", "comfyui", "-f", folder / "Containerfile", folder,
                       timeout=200, status=None)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
                if ":\t" in line)


def check_container(*engine):
    """Checks that the pack starts ComfyUI again, under memstow, in a container of this engine. If the engine restarts
    the container, ComfyUI runs under memstow again. SIGINT closes ComfyUI in order. engine: the words with which each
    command of the engine begins. Skips the test if the engine can build no image or run no container here."""
    data = support.HERE / "data"
    for name in ("custom_nodes", "models", "input", "output", "user"):
        (data / name).mkdir(parents=True)
    install_pack(data)
    web = support.HERE / "web" # Direct puts ComfyUI's page there
    web.mkdir()
    tried = build_image(engine, data)
    if tried.returncode:
        support.skip(f"{engine[0]} can build no image here: {tried.stderr.strip()[-300:]}")
    limits = ["--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
    tried = support.run(*engine, "run", "--rm", *limits, "-v", "/usr:/usr:ro", "-v", "/lib64:/lib64:ro", "-v",
                        "/lib:/lib:ro", "--entrypoint", "/usr/bin/true", "comfyui", timeout=200, status=None)
    if tried.returncode:
        support.skip(f"{engine[0]} can run no container here: {tried.stderr.strip()[-300:]}")

    try:
        check_starts(engine, limits, data, web)
    finally:
        support.run(*engine, "rm", "-f", NAME, status=None)


def check_starts(engine, limits, data, web):
    places = {"/usr", "/bin", "/lib", "/lib64", "/etc", sys.base_prefix, *(os.path.realpath(path) for path in (
        support.ROOT, sys.prefix, support.COMFYUI, support.BUILD))}
    volumes = [word for place in sorted(places) for word in ("-v", f"{place}:{place}:ro")]

    def first(_pid=None):
        """The pid that the container's process 1 has outside of the container."""
        return int(support.run(*engine, "inspect", "--format", "{{.State.Pid}}", NAME).stdout)

    comfy = Direct("container", [*engine, "run", "--name", NAME, *limits, *volumes, "-v", f"{web}:{web}:ro", "-v",
                                 f"{data}:{data}", "comfyui"], support.HERE, {}, first)
    assert comfy.is_tracked(), comfy.log()
    status = status_of(comfy.pid)
    assert status["NSpid"].split()[-1] == "1" and status["Seccomp"] == "2", status # seccomp: a filter
    assert int(status["CapEff"], 16) != int(status_of("self")["CapEff"], 16), status
    ledger, = data.glob("memstow.python*.1.mst")

    support.run(*engine, "restart", "--time", "1", NAME, timeout=200)
    support.wait_for(lambda: comfy.get("/system_stats"), 200, "ComfyUI answering again")
    again = first()
    assert again != comfy.pid and str(support.LIBRARY) in pathlib.Path(f"/proc/{again}/maps").read_text()
    assert support.run(*engine, "logs", NAME).stderr.count(AGAIN) == 2 and comfy.get("/memstow/owners") is not None
    support.run(*engine, "kill", "--signal", "INT", NAME)
    support.wait_for(lambda: not pathlib.Path(f"/proc/{again}").exists(), 100, "the end of ComfyUI")
    assert (data / "output/memstow/shutdown.log").exists(), support.run(*engine, "logs", NAME).stderr[-3000:]
    report = json.loads(support.memstow("report", "--json", ledger).stdout)
    assert report["process"]["pid"] == 1 and report["totals"]["allocated_bytes"], report["process"]
