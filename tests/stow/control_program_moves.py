# timeout: 200
"""The program answers a request by moves that it makes itself. The progress of these moves is reported, also on a
terminal. If the client cancels the request, these moves stop early. The program can still complete them with later
moves of its own."""
import pathlib, sys

for room in ("harm", "cli"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / room))
import _moving, _terminal
from _control import *

SIZE, ECANCELED = 512 << 20, -125
SETUP = rf"""
import zlib
abi.memstow_owner_open.restype = abi.memstow_stow.restype = abi.memstow_restore.restype = ctypes.c_int64
model = owner("model", 1)
assert abi.memstow_scope_enter(model) == 0
block = bytearray({SIZE})
assert abi.memstow_scope_leave(model) == 0
block[:] = bytes(k % 251 for k in range(4096)) * ({SIZE} // 4096)
def serve():
    while type(request := take(60000)) is tuple:
        call = {{2: abi.memstow_stow, 3: abi.memstow_restore}}[request[0]]
        done(request[2], call(request[1]))
take(0)
threading.Thread(target=serve, daemon=True).start()
"""


def asked(kind, ended_at_first_progress=False):
    """Sends a request. Returns the reports of progress, each as (moved bytes, bytes to move), and the final answer."""
    connection, told = connected(path), []
    connection.send(pack(kind, model))
    while (answer := receive(connection))[0] != DONE:
        if answer[0] == WORKING and answer[2]:
            told.append((answer[2], int(answer[3])))
        if ended_at_first_progress and len(told) == 1:
            connection.send(pack(CANCEL))
    return told, answer[2]


folder = _moving.real_disk()
program = Program(env={"MEMSTOW_STOW_DIR": str(folder)})
program.tell(f"exec({SETUP!r})")
model, total = program.tell("model"), program.tell("zlib.crc32(block)")
path = program.listening()

# On a disk that takes everything in a quarter of a second, no progress is reported; then the test tries again.
for attempt in range(8):
    told, moved = asked(STOW, ended_at_first_progress=True)
    if 0 < moved < SIZE:
        break
    assert moved == SIZE and not told, (told, moved)
    assert program.tell("abi.memstow_restore(model)") == SIZE
assert 0 < moved < SIZE and 0 < told[0][0] <= moved and told[0][1] == SIZE, (told, moved)
assert program.tell("abi.memstow_stow(model)") == SIZE - moved # no client cancels this
told, moved = asked(RESTORE, ended_at_first_progress=True)
assert moved == SIZE if not told else 0 < moved < SIZE, (told, moved)
assert program.tell("abi.memstow_restore(model)") == SIZE - moved
told, moved = asked(STOW)
assert moved == SIZE and all(a <= b == SIZE for a, b in told) and told == sorted(told), (told, moved)
assert program.tell("zlib.crc32(block)") == total

# Checks the line of progress on a terminal. For this, the test replaces the program's socket by its own socket, which
# sends the messages.
_terminal.need()
PLAY = f"""
import socket, struct
def play():
    connection = listener.accept()[0]
    connection.recv(1000)
    for kind, number, text in (({WORKING}, 64 << 20, b"536870912"), ({DONE}, 5 << 20, b"")):
        connection.send(struct.pack("<IHHIIQq", 0x4357534d, 1, kind, 32 + len(text), 0, 1, number) + text)
        time.sleep(2.5)
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind({str(path)!r})
listener.listen()
threading.Thread(target=play, daemon=True).start()
"""
path.rename(path.with_name("aside"))
program.tell(f"exec({PLAY!r})")
shown = _terminal.shown(80, MEMSTOW, "stow", str(program.pid), "model")
assert f"model {model} 'model (test)': stowing, 64.0 MiB of 512.0 MiB (1 s)" in shown, shown
path.with_name("aside").rename(path)
program.end()
assert not list(folder.iterdir())
folder.rmdir()
