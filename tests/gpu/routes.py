# timeout: 600
"""Each route to CUDA's entry points: the programs of tests/simcuda/clients on a real driver, with the runtimes that
PyTorch brought. For each kind of memory, the ledger agrees with the program to the byte."""
import os

import _gpu, support

DEVICE_KINDS = ("device", "pool", "managed", "array", "vmm")


def said(output):
    lines = [line.split() for line in output.split("\n") if line.startswith("live ")]
    return {kind: (int(size), int(blocks)) for _, kind, size, blocks in lines}


def compare(client, environment):
    """Runs the client without and with memstow, and asserts that the report agrees with the client's output. Returns
    None, or the reason why the client cannot run here."""
    alone = _gpu.kept("alone", support.run, client, env=environment)
    if alone.returncode:
        return (alone.stdout + alone.stderr).strip().split("\n")[-1]
    tracked = _gpu.kept("tracked", support.track, client, env=environment, file=f"{client.name}.mst")
    assert (tracked.returncode, tracked.stdout) == (0, alone.stdout), f"{client.name}: {tracked}"
    report, wanted = support.report(f"{client.name}.mst"), said(alone.stdout)
    found = {name: (kind["live_bytes"], kind["live_blocks"]) for name, kind in report["cuda"]["kinds"].items()}
    for kind in {*wanted, *DEVICE_KINDS}:
        assert found[kind] == wanted.get(kind,
                                         (0, 0)), f"{client.name}: {kind} is {found[kind]}, not {wanted.get(kind)}"
    cuda = report["cuda"]
    assert wanted and cuda["foreign_frees"] == cuda["missed_frees"] == 0, f"{client.name}: {cuda}"
    return None


def outside():
    path, missing = _gpu.search_path("libcudart.so.12", "libcudart.so.13")
    environment = {**os.environ, "LD_LIBRARY_PATH": path}
    clients = sorted(p for p in (support.BUILD / "tests/simcuda/clients").iterdir() if os.access(p, os.X_OK))
    left_out = {client.name: why for client in clients if (why := compare(client, environment))}
    for name, why in left_out.items():
        is_old_driver = why.endswith("error 35") # the driver is of an older CUDA than the runtime
        assert is_old_driver or any(library in why for library in missing), f"{name}: {why}"
        print(f"not run: {name}: {why}")
    assert len(left_out) < len(clients)
    print(f"{len(clients) - len(left_out)} of {len(clients)} ways")


if __name__ == "__main__":
    outside()
