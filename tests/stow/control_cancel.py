"""Moves that are requested through the control socket do not change the content of memory. If a client takes a trigger
back, the whole trigger ends, not only the present owner's move."""
import json, pathlib, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harm"))
import _moving
from _control import *

MODELS, SIZE = 6, 64 << 20
SETUP = rf'''
import zlib
abi.memstow_owner_open.restype = abi.memstow_stow.restype = ctypes.c_int64
models, blocks = [], []
for i in range({MODELS}):
    models.append(abi.memstow_owner_open(1, b"model%d" % i, b"", ctypes.c_uint64(i + 1), ctypes.c_uint64(0)))
    assert abi.memstow_owner_policy(models[i], 2, 0) == 0
    assert abi.memstow_scope_enter(models[i]) == 0
    blocks.append(bytearray({SIZE}))
    assert abi.memstow_scope_leave(models[i]) == 0
    blocks[i][:] = bytes((i + k) % 256 for k in range(4096)) * ({SIZE} // 4096)
'''


def stowed():
    return [o["stowed_bytes"] for o in json.loads(memstow("owners", program.pid, "--json").stdout)["owners"]
            if o["name"].startswith("model")]


folder = _moving.real_disk()
program = Program(env={"MEMSTOW_STOW_DIR": str(folder)})
program.tell(f"exec({SETUP!r})")
sums = program.tell("[zlib.crc32(block) for block in blocks]")
path = program.listening()
assert ": stowed 64.0 MiB" in program.ask("stow", "model0").stdout
assert ": restored 64.0 MiB" in program.ask("restore", "model0").stdout
assert program.tell("[zlib.crc32(block) for block in blocks]") == sums and not any(stowed())

connection = connected(path)
connection.send(pack(TRIGGER))
while (answer := receive(connection))[0] != WORKING:
    assert answer[0] != DONE, f"the trigger ended before it could be taken back: {answer}"
connection.send(pack(CANCEL))
assert last(connection)[2] >= 0
left = stowed()
assert left.count(0) > 1, f"only the move that was on was ended: {left}"

# The cancel ended only its own request. A later request moves everything.
program.ask("trigger")
assert all(stowed()), stowed()
assert program.tell("[zlib.crc32(block) for block in blocks]") == sums
program.end()
assert not list(folder.iterdir())
folder.rmdir()
