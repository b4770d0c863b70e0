"""run checks the command first: 127 if it does not exist, 126 if it cannot be run, a line if it cannot be tracked."""
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
