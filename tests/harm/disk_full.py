# needs: root
"""The disk is full from the start, or becomes full during the run. The program behaves as without memstow. memstow's
file can be read, or a line says that the file is missing."""
import contextlib, os, pathlib, shlex

import _bad_day, support

if os.geteuid() != 0:
    support.skip("needs root, to mount a small file system")
program = _bad_day.program()


@contextlib.contextmanager
def small_disk(kib, *taken):
    disk = pathlib.Path("disk")
    disk.mkdir(exist_ok=True)
    if support.run("mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", disk, status=None).returncode:
        support.skip("cannot mount a file system here")
    try:
        yield disk
    finally:
        support.run("umount", "-l", disk)


for kib in (4, 128, 260, 300, 600, 1200, 8192):
    with small_disk(kib) as disk:
        said = _bad_day.same([program], file=disk / "out.mst")
        if not (disk / "out.mst").exists():
            assert "no ledger" in said and kib < 260, (kib, said)
            continue
        report = support.report(disk / "out.mst")
        assert _bad_day.is_exact(report, program) or report["lost"]["file"], (kib, report["lost"])
        assert kib < 8192 or _bad_day.is_exact(report, program), report["lost"]

with small_disk(8192) as disk: # another writer fills it while the program runs
    def room():
        for file in disk.iterdir():
            file.unlink()
    _bad_day.same([program, f"fill={disk / 'filler'}"], file=disk / "out.mst", before=room)
    report = support.report(disk / "out.mst")
    assert report["lost"]["file"] and report["process"]["state"] == "exited", report["lost"]

# The process replaces its program several times, and the last program's ledger does not fit on the disk. The summary
# says so, and does not speak of another process.
chain = "true"
for _ in range(5):
    chain = f"exec sh -c {shlex.quote(chain)}"
for name in ([], ["-o", "out.mst"]):
    noted = 0
    for kib in range(300, 700, 50):
        with small_disk(kib) as disk:
            said = support.memstow("run", *name, "--", "sh", "-c", chain, cwd=disk).stderr
            assert "another process" not in said, (kib, said)
            noted += "whose ledger could not be written" in " ".join(said.split())
    assert noted, f"no disk was too small for the last ledger: {name}"
