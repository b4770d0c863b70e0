#!/usr/bin/env python3
# needs: comfyui root deb:docker.io
# long
# timeout: 600
"""The pack starts ComfyUI again, under memstow, in a container of Docker. Memory in use is stowed there if the
container has /dev/userfaultfd. The test has a daemon of its own. The daemon keeps its images in the test's folder, and
changes no rule of the network."""
import os, pathlib, shutil, tempfile

import support
from _container import check_container

own = pathlib.Path(tempfile.mkdtemp(prefix="memstow-docker-")) # the path of a socket must be short
log = support.HERE / "dockerd.log"
os.environ["DOCKER_BUILDKIT"] = "0" # the daemon's own builder: it needs no plugin of the client
engine = ["docker", "--host", f"unix://{own}/socket"]


def answers():
    return support.run(*engine, "info", status=None).returncode == 0


def stow(*options):
    mounts = [word for place in {"/usr", "/bin", "/lib", "/lib64", os.path.realpath(support.BUILD)}
              for word in ("-v", f"{place}:{place}:ro")]
    return support.run(*engine, "run", "--rm", "--network", "none", *mounts, "--workdir", "/tmp", *options,
                       "--entrypoint", os.path.realpath(support.MEMSTOW), "comfyui", "run", "--",
                       os.path.realpath(support.BUILD / "tests/prog/owners_stow"), status=None)


def clear(daemon):
    """Ends the daemon. Unmounts what the daemon leaves mounted, for example its network namespace, and removes its
    folder."""
    daemon.terminate()
    daemon.wait(60)
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()[::-1]:
        if (place := line.split()[1]).startswith((f"{own}/", f"{support.HERE}/store/")):
            support.run("umount", "--lazy", place)
    shutil.rmtree(own)


with open(log, "w") as output:
    daemon = support.start("dockerd", "--bridge", "none", "--iptables=false", "--ip6tables=false", "--storage-driver",
                           "vfs", "--data-root", support.HERE / "store", "--exec-root", own / "run", "--pidfile",
                           own / "pid", "--host", f"unix://{own}/socket", stdout=output, stderr=output)
try:
    support.wait_for(lambda: daemon.poll() is not None or answers(), 60, "Docker's daemon answering")
    if daemon.poll() is not None:
        support.skip(f"Docker's daemon does not start here: {log.read_text().strip()[-300:]}")
    check_container(*engine)
    if os.path.exists("/dev/userfaultfd"): # docs/moving.md
        assert "not so: abi_memstow_stow(model)" in (refused := stow()).stdout, refused
        assert (moved := stow("--device", "/dev/userfaultfd")).returncode == 0, moved
finally:
    clear(daemon)
