# needs: root
"""An output directory that may not be written to, or that lies on a read-only file system, is refused: exit 2."""
import os, pathlib

import support

if os.geteuid() != 0:
    support.skip("needs root, to become another user")


closed = pathlib.Path("closed").resolve()
closed.mkdir(mode=0o755)
done = support.run(support.command_for_others(), "run", "-o", closed / "out.mst", "--", "true", status=2,
                   preexec_fn=support.as_nobody)
assert "not writable" in done.stderr, done.stderr

disk = pathlib.Path("disk").resolve()
disk.mkdir()
if support.run("mount", "-t", "tmpfs", "-o", "ro", "none", disk, status=None).returncode == 0:
    try:
        done = support.memstow("run", "-o", disk / "out.mst", "--", "true", status=2)
        assert "read-only" in done.stderr, done.stderr
    finally:
        support.run("umount", "-l", disk)
