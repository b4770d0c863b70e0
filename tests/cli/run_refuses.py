"""run starts nothing when its output file would replace what is not ours."""
import os, pathlib
from _ledger import simple
from support import memstow


def refused(file, message, status=2):
    done = memstow("run", "-o", file, "--", "touch", "started", status=status)
    assert message in done.stderr and done.stderr.count("\n") == 1, (file, done.stderr)
    assert not os.path.exists("started"), file


pathlib.Path("precious.txt").write_text("do not lose me")
os.symlink("precious.txt", "link.mst")
os.symlink("nowhere", "dangling.mst")
os.mkdir("directory")
os.mkfifo("fifo")
pathlib.Path("empty").touch()
refused("precious.txt", "exists and is not a memstow file: not replaced")
refused("empty", "exists and is not a memstow file: not replaced")
refused("link.mst", "is a symbolic link: not replaced")
refused("dangling.mst", "is a symbolic link: not replaced")
refused("directory", "is not a regular file: not replaced")
refused("fifo", "is not a regular file: not replaced")
refused("directory/", "not a file name")
refused("missing/x.mst", "no such directory")
refused("precious.txt/x.mst", "precious.txt: ")
assert pathlib.Path("precious.txt").read_text() == "do not lose me"

# The ledger of a process that runs: this one.
boot_id = bytes.fromhex(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
simple(state=1, pid=os.getpid(), boot_id=boot_id, start_ticks=ticks).save("mine.mst")
refused("mine.mst", f"is the ledger of process {os.getpid()}, which still runs: not replaced")
if os.geteuid() == 0:
    simple().save("other.mst")
    os.chown("other.mst", 12345, 12345)
    refused("other.mst", "belongs to another user: not replaced")
