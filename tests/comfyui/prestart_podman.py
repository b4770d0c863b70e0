#!/usr/bin/env python3
# needs: comfyui root deb:podman deb:runc
# long
# timeout: 600
"""The pack starts ComfyUI again, under memstow, in a container of Podman."""
import support
from _container import check_container

check_container("podman", "--root", support.HERE / "store", "--runroot", support.HERE / "run", "--storage-driver",
                "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "runc")
