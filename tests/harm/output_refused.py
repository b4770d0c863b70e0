"""What `memstow run -o` must not write to is refused before the program starts: exit 2, one message, nothing
touched."""
import os, pathlib

import support

ran = pathlib.Path("ran")


def refused(path, *words):
    done = support.memstow("run", "-o", path, "--", "touch", ran, status=2)
    assert not ran.exists(), f"{path}: the program was started"
    assert len(done.stderr.strip().split("\n")) == 1 and str(path).split("/")[0] in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


pathlib.Path("kept.txt").write_text("kept")
os.symlink("kept.txt", "link")
os.symlink("nowhere", "dangling")
os.mkfifo("fifo")
os.mkdir("folder")
refused("link", "symbolic link")
refused("dangling", "symbolic link")
refused("fifo", "regular file")
refused("folder", "regular file")
refused("kept.txt", "not a memstow file")
refused("absent/out.mst", "no such directory")
refused("kept.txt/out.mst")
assert pathlib.Path("kept.txt").read_text() == "kept" and not os.path.exists("nowhere")
if os.geteuid() == 0:
    support.track("true", file="theirs.mst")
    os.chown("theirs.mst", 12345, 12345)
    refused("theirs.mst", "another user")
    before = pathlib.Path("theirs.mst").read_bytes()
    # The library says no by itself, too: it does not rely on the command.
    environment = {**os.environ, "LD_PRELOAD": str(support.LIBRARY),
                   "MEMSTOW_OUT": str(pathlib.Path("theirs.mst").resolve())}
    support.run("true", env=environment)
    assert pathlib.Path("theirs.mst").read_bytes() == before
environment = {**os.environ, "LD_PRELOAD": str(support.LIBRARY), "MEMSTOW_OUT": str(pathlib.Path("link").absolute())}
support.run("true", env=environment)
assert pathlib.Path("kept.txt").read_text() == "kept"

# An earlier file of ours is replaced.
support.track("true", file="again.mst")
first = support.report("again.mst")["process"]["pid"]
support.track("true", file="again.mst")
assert support.report("again.mst")["process"]["pid"] != first
