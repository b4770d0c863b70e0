# needs: deb:massif-visualizer
"""massif-visualizer, run without a screen, loads every file of --massif, and finds its snapshots and its peak. If a
file is damaged, the viewer names the line that it cannot read, and does not load the file."""
import os, pathlib, re, shutil, subprocess

import _hostile
from _ledger import Ledger
from support import HERE, memstow, skip, start, wait_for

if not shutil.which("massif-visualizer"):
    skip("needs massif-visualizer")
os.mkdir("home", 0o700)
QUIET = {"HOME": str(HERE / "home"), "XDG_RUNTIME_DIR": str(HERE / "home"), "PATH": os.environ["PATH"],
         "QT_QPA_PLATFORM": "offscreen", "LC_ALL": "C.UTF-8", "QT_LOGGING_RULES": "*.debug=true"}


def shown(file):
    """Opens the file in massif-visualizer. Returns (snapshots, number of the peak's snapshot, bytes of the peak as
    text), or the line that the viewer cannot read."""
    said = pathlib.Path(f"{file}.log")
    with said.open("wb") as log:
        viewer = start("massif-visualizer", file, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=QUIET)
    done = re.compile(r"peak cost: .*\n|invalid line .*\n")
    wait_for(lambda: done.search(said.read_text(errors="replace")) or viewer.poll() is not None, what=f"{file} loaded")
    viewer.kill()
    viewer.wait()
    text = said.read_text(errors="replace")
    if wrong := re.search(r"invalid line.*", text):
        return wrong[0]
    found = re.search(r'snapshots: (\d+)\npeak: snapshot # (\d+) after .*\npeak cost: "([^"]*)" heap', text)
    assert found, text
    return int(found[1]), int(found[2]), found[3]


def massif(*arguments):
    """Writes a massif file. Returns its name, and what the viewer must find in it: (snapshots, number of the peak's
    snapshot, bytes of the peak). The peak is the largest snapshot with call stacks."""
    file = f"{arguments[0]}.out"
    text = memstow("report", *arguments, "--massif").stdout
    pathlib.Path(file).write_text(text)
    snapshots = re.findall(r"snapshot=(\d+)\n(?:.*\n){2}mem_heap_B=(\d+)\n(?:.*\n){2}heap_tree=(\w+)", text)
    size, number = max((int(size), -int(number)) for number, size, kind in snapshots if kind != "empty")
    return file, (len(snapshots), -number, size)


made = Ledger(total_peak=6000, host_peak=6000, picture=(6000, 5900, 2 * 10**9))
made.fact(2, "shop --all")
lib = made.module("/opt/libx.so")
for size, name in ((700, "load"), (250, "<module>"), (3, "f.<locals>.<lambda>")):
    stack = made.node([made.frame(0x10, lib), made.python("main", "/opt/app.py", 3), made.python(name, "/a b.py", 12)])
    made.count(made.site(lib, stack=stack, peak=5 * size), alloc=(size, 1))
made.count(made.site(lib), alloc=(50, 1))
for i in range(300):
    made.point(10**9 + i * 6_000_000, 10 * i)
made.save("x.mst")
Ledger().save("empty.mst")
none = Ledger(stacks=0)
none.count(none.site(), alloc=(70, 1))
none.save("none.mst")
deep = Ledger()
deep.count(deep.site(stack=deep.node([deep.python("again", "/a.py", 1)] * 5_000)), alloc=(1000, 1))
deep.save("deep.mst")
_hostile.save("hostile.mst")
for name in ("x.mst", "empty.mst", "none.mst", "deep.mst", "hostile.mst"):
    file, (count, peak, size) = massif(name, "--min=0")
    found = shown(file)
    text = f"{size} B" if size < 1000 else None
    assert found[:2] == (count, peak) and (text is None or found[2] == text), (name, found, count, peak, size)
assert shown("x.mst.out")[2] == "4.7 KiB", shown("x.mst.out") # 4,765 bytes

whole = pathlib.Path("x.mst.out").read_text()
pathlib.Path("damaged.out").write_text(whole.replace("n1: ", "n1; ", 1))
assert "invalid line" in shown("damaged.out")
