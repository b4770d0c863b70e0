# Every client reaches the simulated driver by its own route, and has the same live memory at the end.
import subprocess

from _simcuda import ROUTES, client, expected, run_client

assert len(ROUTES) == 14, ROUTES
for route in ROUTES:
    live = run_client(route)
    assert live == expected(route), f"{route}: {live}"


def needed(route):
    return subprocess.run(["objdump", "-p", client(route)], capture_output=True, text=True, check=True).stdout


# The routes must differ in how they are linked, or the test would prove nothing.
for route, library in {"driver_linked": "libcuda.so.1", "driver_entry_point": "libcudart.so.13",
                       "runtime_versioned_12": "libcudart.so.12", "runtime_versioned_13": "libcudart.so.13",
                       "runtime_unversioned": "libcudart.so.13"}.items():
    assert f"NEEDED               {library}\n" in needed(route), route
for route in ("driver_dlsym", "runtime_dlopen", "runtime_static"):
    assert "NEEDED               libcuda" not in needed(route), route
assert "required from libcudart.so.13" in needed("runtime_versioned_13")
assert "required from libcudart" not in needed("runtime_unversioned")
