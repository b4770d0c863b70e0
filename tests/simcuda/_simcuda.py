"""What the tests of the simulated CUDA driver share: where its libraries and clients are, and how to run one."""
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["MEMSTOW_BUILD"]) / "tests/simcuda"
ROUTES = sorted(p.name for p in (BUILD / "clients").iterdir())

DRIVER = {"device": (3156968, 3), "managed": (4194304, 1), "pool": (27275321, 22), "pinned": (2101248, 2),
          "registered": (1048576, 1), "array": (5521408, 3), "vmm": (4194304, 1)}
RUNTIME = {"device": (3145728 + 10240 + 40960, 3), "managed": (4194304, 1), "pool": (27275321, 22),
           "pinned": (2101248, 2), "registered": (1048576, 1), "array": (5521408, 3)}


def environment(**more):
    libraries = [BUILD / "lib", BUILD / "lib/12", BUILD / "lib/13"]
    return dict(os.environ, LD_LIBRARY_PATH=":".join(map(str, libraries)), **more)


def client(route):
    return BUILD / "clients" / route


def run_client(route, *before, **more):
    """Runs a client, behind the words `before`; returns what it says is live: kind → (bytes, blocks)."""
    result = subprocess.run([*before, client(route)], env=environment(**more), capture_output=True, text=True, timeout=100)
    assert result.returncode == 0, f"{route}: status {result.returncode}\n{result.stdout}{result.stderr}"
    lines = result.stdout.splitlines()
    assert lines[-1] == "ok", result.stdout
    return {kind: (int(size), int(blocks)) for _, kind, size, blocks in map(str.split, lines[:-1])}


def expected(route):
    return DRIVER if route.startswith("driver_") else RUNTIME
