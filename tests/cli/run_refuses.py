"""run starts nothing if its output file would replace a foreign file. It writes one message, changes nothing, and exits
with 2. The library refuses the same files by itself."""
import os, pathlib

from _ledger import simple
from support import LIBRARY, memstow, report, run, track


def refused(path, message):
    done = memstow("run", "-o", path, "--", "touch", "started", status=2)
    assert message in done.stderr and done.stderr.count("\n") == 1, (path, done.stderr)
    assert not os.path.exists("started"), f"{path}: the program was started"


def refused_by_library(path):
    run("true", env={**os.environ, "LD_PRELOAD": str(LIBRARY), "MEMSTOW_OUT": str(pathlib.Path(path).absolute())})


precious = pathlib.Path("precious.txt")
precious.write_text("do not lose me")
os.symlink("precious.txt", "link.mst")
os.symlink("nowhere", "dangling.mst")
os.mkdir("directory")
os.mkfifo("fifo")
pathlib.Path("empty").touch()
refused("precious.txt", "precious.txt: exists and is not a memstow file: not replaced")
refused("empty", "empty: exists and is not a memstow file: not replaced")
refused("link.mst", "link.mst: is a symbolic link: not replaced")
refused("dangling.mst", "dangling.mst: is a symbolic link: not replaced")
refused("directory", "directory: is not a regular file: not replaced")
refused("fifo", "fifo: is not a regular file: not replaced")
refused("directory/", "not a file name")
refused("missing/x.mst", "missing: no such directory")
refused("precious.txt/x.mst", "precious.txt: not a directory")
refused_by_library("link.mst")
assert precious.read_text() == "do not lose me" and not os.path.exists("nowhere")

# The ledger of a process that runs, which is this test.
boot_id = bytes.fromhex(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
simple(state=1, pid=os.getpid(), boot_id=boot_id, start_ticks=ticks).save("mine.mst")
refused("mine.mst", f"is the ledger of process {os.getpid()}, which still runs: not replaced")

if os.geteuid() == 0:
    simple().save("other.mst")
    os.chown("other.mst", 12345, 12345)
    before = pathlib.Path("other.mst").read_bytes()
    refused("other.mst", "belongs to another user: not replaced")
    refused_by_library("other.mst")
    assert pathlib.Path("other.mst").read_bytes() == before

# An earlier file of ours is replaced.
track("true", file="again.mst")
first = report("again.mst")["process"]["pid"]
track("true", file="again.mst")
assert report("again.mst")["process"]["pid"] != first

# A file that is no library is refused. The loader would start the program without it, or wait if it is a FIFO.
for library, message in (("precious.txt", "is not a 64-bit shared library"), ("fifo", "is not a 64-bit shared library"),
                         ("directory", "is not a 64-bit shared library"), ("nowhere.so", "cannot be read")):
    done = memstow("run", "-o", "new.mst", "--", "touch", "started", status=2,
                   env={**os.environ, "MEMSTOW_LIBRARY": os.path.abspath(library)}, timeout=20)
    assert message in done.stderr and library in done.stderr and done.stderr.count("\n") == 1, (library, done.stderr)
    assert not os.path.exists("started"), f"{library}: the program was started"
