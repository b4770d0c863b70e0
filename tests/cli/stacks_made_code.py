"""The functions of code that belongs to no file get their names from /tmp/perf-PID.map. This map is used only if it is
a regular file, belongs to the process's user or to ours, and was written while the process ran. Each good line of the
map is used, even if other lines are bad."""
import atexit, os, pathlib, subprocess, time
from _ledger import Ledger
from support import memstow, report

BOOT_ID = bytes.fromhex(pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
SECOND = 10**9
ended = subprocess.Popen(["true"])
ended.wait()
MAP = pathlib.Path(f"/tmp/perf-{ended.pid}.map")
atexit.register(lambda: MAP.unlink(missing_ok=True))


def names(*addresses, interrupted=True, file="x.mst", **header):
    """The names of the functions at these addresses, in a process that began ten seconds ago and ended now."""
    usual = dict(pid=ended.pid, boot_id=BOOT_ID, uid=os.geteuid(), start_wall_ns=time.time_ns() - 10 * SECOND,
                 start_ns=SECOND, end_ns=11 * SECOND)
    made = Ledger(**{**usual, **header})
    frames = [made.frame(address, interrupted=interrupted) for address in reversed(addresses)]
    made.count(made.site(stack=made.node(frames)), alloc=(3000, 3))
    made.save(file)
    return [frame["function"] for frame in report(file)["sites"][0]["stack"]]


assert names(0x7000) == [None] # there is no such file yet
MAP.write_bytes(b"""\
7000 100 first
7100 80 py::second:/srv/a b.py
zzzz 10 not a number
7200
7200 10
7200 10 \n\
-7200 10 sign
 7200 10 blank
7200 0 nothing
7200 ffffffffffffffff past the end
99999999999999999999 10 too large
7300 10 \xff\xfe\x1b[31m\x00hidden
""" + b"7400 10 " + b"l" * 100_000 + b"\n" + b"""\
8000 1000 outer
8100 10 inner
9000 10 old
9000 10 new
a000 1000 older
a800 1000 newer
c000 10 cut off""")
assert names(0x7000, 0x70ff, 0x7100, 0x717f) == ["first"] * 2 + ["py::second:/srv/a b.py"] * 2
found = names(0x6fff, 0x7180, 0x7200, 0x7400, 0xc000, 0, 2**64 - 1)
assert found == [None] * 7, found
found = names(0x80ff, 0x8100, 0x8110, 0x9000, 0xa7ff, 0xa800, 0xb7ff)
assert found == ["outer", "inner", "outer", "new", "older", "newer", "newer"], found
assert names(0x7100, interrupted=False) == ["first"] # the call is in front of the address that it returns to
assert names(0x7300) != [None]
text = memstow("report", "x.mst").stdout
assert "\x1b" not in text and "hidden" not in text, text
names(0x7100)
assert "py::second:/srv/a b.py  (no module)" in memstow("report", "x.mst").stdout
folded = memstow("report", "x.mst", "--folded").stdout
assert folded.startswith("py::second"), folded

# Maps of another process are not used. Such a map was written before the process began, after it ended (when another
# process had its PID), or before this boot.
now = time.time_ns()
assert names(0x7000, start_wall_ns=now + SECOND) == [None]
assert names(0x7000, end_ns=2 * SECOND) == [None]
assert names(0x7000, boot_id=bytes(16)) == [None]
assert names(0x7000, end_ns=0) == ["first"] # killed: its end is not known
mine = pathlib.Path(f"/tmp/perf-{os.getpid()}.map")
atexit.register(lambda: mine.unlink(missing_ok=True))
mine.write_text("7000 100 other\n")
assert names(0x7000, end_ns=0, pid=os.getpid(), start_ticks=1) == [None]
ticks = int(pathlib.Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()[19])
assert names(0x7000, end_ns=0, pid=os.getpid(), start_ticks=ticks, state=1) == ["other"]
os.utime(mine, (1, 1))
assert names(0x7000, end_ns=0, pid=os.getpid(), start_ticks=ticks, state=1) == [None]

# Files that cannot be trusted.
MAP.rename("elsewhere")
MAP.symlink_to(pathlib.Path("elsewhere").resolve())
assert names(0x7000) == [None]
MAP.unlink()
os.mkfifo(MAP)
assert names(0x7000) == [None]
MAP.unlink()
MAP.mkdir()
assert names(0x7000) == [None]
MAP.rmdir()
MAP.write_bytes(b"")
assert names(0x7000) == [None]
if os.geteuid() == 0:
    MAP.write_text("7000 100 theirs\n")
    os.chown(MAP, 12345, 12345)
    assert names(0x7000) == [None]
    assert names(0x7000, uid=12345) == ["theirs"]
    os.chown(MAP, 0, 0)

# A file that is larger than the limit.
with open(MAP, "w") as file:
    file.write("7000 100 first\n")
    file.truncate(100 << 20)
    file.seek(100 << 20)
    file.write("\n7000 100 last\n")
assert names(0x7000) == ["first"]
