# needs: cc
# Models on several devices, over the simulated driver (a test double): what memstow serves moves out of its own device and context
# and back there, and other devices may use it as they could before. Each case of _devices.c by itself.
import json

import support
from _simcuda import BUILD, environment

program = BUILD / "devices"
names = support.run(program, env=environment()).stdout.split()
assert len(names) == 12, names
(support.HERE / "aimdo.c").write_text("int vbar_allocate(void); int vbar_allocate(void) { return 0; }\n")
support.compile(support.HERE / "aimdo.c", name="aimdo.so", flags=("-shared", "-fPIC"))
for name in names:
    wish = {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1", "SIMCUDA_DEVICES": "2", "SIMCUDA_CAPACITY": "128M"}
    if name == "no_peers":
        wish["SIMCUDA_PEERS"] = "0"
    done = support.track(program, name, env=environment(**wish), file=f"{name}.mst", status=None)
    assert done.returncode == 0 and done.stdout == "ok\n", f"{name}: {done.returncode}\n{done.stdout}{done.stderr}"


def refusals(file):
    """What the trace says that stayed: {reason: bytes}."""
    lines = json.loads(support.memstow("decisions", file, "--json").stdout)["lines"]
    return {line["because"]: line["bytes"] for line in lines if line["kind"] == "REFUSED"}


assert refusals("no_peers.mst") == {"there is a device that could not copy from it": 4 << 20}, refusals("no_peers.mst")
assert refusals("each_to_its_own.mst") == {}, refusals("each_to_its_own.mst")

# The ledger has each block on its own device.
blocks = support.report("peer_before.mst")["cuda"]["blocks"]
assert [(b["device"], b["size_bytes"], b["kind"]) for b in blocks] == [(0, 4 << 20, "device")], blocks
blocks = {(b["device"], b["kind"]): b["size_bytes"] for b in support.report("no_peers.mst")["cuda"]["blocks"]}
assert blocks == {(0, "device"): 4 << 20, (1, "pool"): 6 << 20, (1, "device"): 4 << 20}, blocks
