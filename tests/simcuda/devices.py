# needs: cc
# Models on several devices. Memory that memstow serves moves out of its own device and context and back there, and
# other devices can still use it. Over the simulated driver (a test double): each case of _devices.c by itself.
import support
from _simcuda import left_out, refusals, run_cases

(support.HERE / "aimdo.c").write_text("int vbar_allocate(void); int vbar_allocate(void) { return 0; }\n")
support.compile(support.HERE / "aimdo.c", name="aimdo.so", flags=("-shared", "-fPIC"))


def wish(case):
    peers = {"SIMCUDA_PEERS": "0"} if case == "no_peers" else {}
    return {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1", "SIMCUDA_DEVICES": "2", "SIMCUDA_CAPACITY": "128M",
            **peers}


run_cases("devices", 12, wish)

assert refusals("no_peers.mst") == {"another device could not copy from it": 4 << 20}, refusals("no_peers.mst")
if not left_out("devices"):
    assert refusals("each_to_its_own.mst") == {}, refusals("each_to_its_own.mst")

# The ledger has each block on its own device.
blocks = support.report("peer_before.mst")["cuda"]["blocks"]
assert [(b["device"], b["size_bytes"], b["kind"]) for b in blocks] == [(0, 4 << 20, "device")], blocks
blocks = {(b["device"], b["kind"]): b["size_bytes"] for b in support.report("no_peers.mst")["cuda"]["blocks"]}
assert blocks == {(0, "device"): 4 << 20, (1, "pool"): 6 << 20, (1, "device"): 4 << 20}, blocks
