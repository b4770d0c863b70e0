"""A file that cannot be read gives one message, and exit code 3."""
import os
from _ledger import simple
from support import memstow

good = simple().bytes()
cases = {"empty": (b"", "empty"), "foreign": (b"\x7fELF" + bytes(5000), "not a memstow file"),
         "newer": (simple(major=2).bytes(), "format 2.0 is newer than this memstow (1.6) reads"),
         "cut": (good[:5000], f"truncated at byte 5000 of {len(good)}"),
         "head": (good[:100], "damaged: its header does not add up"),
         "kind": (simple(kind=7).bytes(), "of a kind (7) that this memstow does not know"),
         "section": (good[:4096 + 8] + b"\xff" * 8 + good[4096 + 16:],
                     "damaged at byte 4096: a section of impossible length"),}
for name, (content, message) in cases.items():
    with open(name, "wb") as file:
        file.write(content)
    done = memstow("report", name, status=3)
    if name != "head":
        assert done.stderr == f"memstow: {name}: {message}\n", done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1
assert memstow("report", "missing", status=3).stderr == "memstow: missing: No such file or directory\n"
assert memstow("report", ".", status=3).stderr == "memstow: .: Is a directory\n"
os.mkfifo("fifo")
assert memstow("report", "fifo", status=3).stderr == "memstow: fifo: not a regular file\n"
assert memstow("diff", "cut", "cut", status=3).stdout == ""
