"""run checks the command first. The exit code is 127 if the command does not exist, and 126 if it cannot be run. If it
cannot be tracked, one line says so."""
import os, pathlib
from support import memstow

done = memstow("run", "--", "no-such-program", status=127)
assert done.stderr == "memstow: no-such-program: not found\n", done.stderr
os.mkdir("folder")
for name in ("folder", "./folder", "folder/"):
    assert memstow("run", name, status=126).stderr == f"memstow: {name}: is a directory\n", name
assert memstow("run", "./missing", status=127).stderr == "memstow: ./missing: not found\n"
pathlib.Path("plain").write_text("text")
assert memstow("run", "./plain", status=126).stderr == "memstow: ./plain: not executable\n"
assert memstow("run", "/", status=126).stderr == "memstow: /: is a directory\n"
pathlib.Path("bad").write_text("#!/no/such/interpreter\n")
os.chmod("bad", 0o755)
assert memstow("run", "./bad", status=127).stderr == "memstow: ./bad: its interpreter /no/such/interpreter: not found\n"
assert not list(pathlib.Path(".").glob("*.mst"))
