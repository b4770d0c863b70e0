"""Two requests for one owner come at the same time: twice the same request, or stow and restore. Each request is
answered, and the content stays the same. A command that is interrupted leaves the owner whole."""
import os, pathlib, signal, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _moving
from support import MEMSTOW, PYTHON, expect_exit, start, wait_for

folder = _moving.real_disk()
PROGRAM = r"""
import ctypes, os, sys, zlib
abi = ctypes.CDLL(None)
abi.memstow_owner_open.restype = ctypes.c_int64
owner = abi.memstow_owner_open(1, b"model", b"", ctypes.c_uint64(1), ctypes.c_uint64(1))
abi.memstow_scope_enter(owner)
content = bytearray(os.urandom(1 << 20) * 16)
abi.memstow_scope_leave(owner)
abi.memstow_owner_idle(owner, 1)
sum = zlib.crc32(content)
print(os.getpid(), flush=True)
sys.stdin.read()
sys.exit(zlib.crc32(content) != sum)
"""


def ask(pid, word):
    return start(MEMSTOW, word, pid, "model", "--timeout=60", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


program = start(MEMSTOW, "run", "--exec", "-o", "out.mst", "--", PYTHON, "-S", "-c", PROGRAM,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env={**os.environ, "MEMSTOW_STOW_DIR": str(folder)})
pid = program.stdout.readline().strip()
for words in (("stow", "stow"), ("stow", "restore"), ("restore", "restore")) * 3:
    for request in [ask(pid, word) for word in words]:
        out, error = request.communicate(timeout=100)
        assert request.returncode == 0 and "model 1 'model': " in out and not error, (words, out, error)
for word in ("stow", "restore", "stow"):
    request = ask(pid, word)
    request.send_signal(signal.SIGINT)
    out, error = request.communicate(timeout=100)
    # The signal may come before the request, in the middle of it, or after it.
    assert request.returncode in (-signal.SIGINT, 0, 1), (word, request.returncode, out, error)
program.stdin.close()
expect_exit(program, 0)
wait_for(lambda: not list(folder.iterdir()), what="the end of the files")
folder.rmdir()
