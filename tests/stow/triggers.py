# timeout: 200
"""Triggers that nobody requests, in running programs. An owner is moved out if it was not used for long, or if the
memory of the machine or of a control group is short. The trace says why. A kept model stays. Without --idle and
--pressure, every model stays."""
import json, pathlib, re, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harm"))
import _moving, support
from _control import *

SIZE = 64 << 20
SETUP = rf'''
import zlib
def load(name, key, policy):
    model = abi.memstow_owner_open(1, name, b"", ctypes.c_uint64(key), ctypes.c_uint64(0))
    assert abi.memstow_owner_policy(model, policy, 0) == 0 and abi.memstow_owner_idle(model, 1) == 0
    assert abi.memstow_scope_enter(model) == 0
    block = bytearray({SIZE})
    assert abi.memstow_scope_leave(model) == 0
    block[:] = bytes((key + k) % 256 for k in range(4096)) * ({SIZE} // 4096)
    return block
unet, clip = load(b"unet", 1, 2), load(b"clip", 2, 1) # stow, keep
'''


def stowed(program):
    return {o["name"]: o["stowed_bytes"] for o in json.loads(memstow("owners", program.pid, "--json").stdout)["owners"]
            if o["kind"] == "model"}


def trace(program):
    return json.loads(memstow("decisions", program.pid, "--json").stdout)["lines"]


def goes_out(folder, wish, reason, **more):
    """Asserts that a trigger with this reason stows the model with the policy stow, and that the model's content stays
    the same."""
    program = Program(wish, env={"MEMSTOW_STOW_DIR": str(folder)}, **more)
    program.tell(f"exec({SETUP!r})")
    sums = program.tell("zlib.crc32(unet), zlib.crc32(clip)")
    wait_for(lambda: stowed(program)["unet"], seconds=40, what=f"{wish}: stowing")
    wait_for(lambda: "REMAINING" in (line["kind"] for line in trace(program)), what="the end of the trigger")
    assert stowed(program) == {"unet": SIZE, "clip": 0}, stowed(program)
    lines = trace(program)
    assert {line["reason"] for line in lines if line["kind"] == "TRIGGER"} == {reason}, lines
    memstow("decisions", program.pid, "--check")
    assert program.tell("zlib.crc32(unet), zlib.crc32(clip)") == sums
    program.end()


folder = _moving.real_disk()
program = Program(env={"MEMSTOW_STOW_DIR": str(folder)})
program.tell(f"exec({SETUP!r})")
time.sleep(3)
assert stowed(program) == {"unet": 0, "clip": 0}
program.end()
goes_out(folder, "--idle=1", "idle")
available = int(re.search(r"MemTotal: *(\d+) kB", open("/proc/meminfo").read())[1]) >> 20
goes_out(folder, f"--pressure={available + 1}G", "pressure") # more than the machine has is never left
assert not list(folder.iterdir())
group = support.MemoryGroup.make()
if group:
    group.limit(300 << 20) # two models are 43 % of it, and one is 22 %
    goes_out(folder, "--pressure=40%", "pressure", preexec_fn=group.join)
assert not list(folder.iterdir())
folder.rmdir()
if not group:
    support.skip("the pressure of a control group: cannot make one with the memory controller")
