# needs: cc deb:valgrind
"""--massif writes snapshots for valgrind's ms_print: one of live memory, and one of the peak. They have the places that
allocate, and the callers of these places. Several snapshots of a process make a curve (for a series see leaks/series).
The bytes of each place are the sum of the places below it. Names from a file never break a line."""
import re, shutil, subprocess
import _hostile
from _ledger import Ledger
from _stacks import ledger, line, program
from support import MEMSTOW, memstow, skip

if not shutil.which("ms_print"):
    skip("needs ms_print")


def massif(*arguments):
    """Returns (snapshots, the output of ms_print, standard error). A snapshot is (ms, bytes, kind, tree). A tree is
    (bytes, text, [trees])."""
    done = subprocess.run([MEMSTOW, "report", "--massif", *arguments], capture_output=True, check=True)
    text = done.stdout.decode()
    with open("massif.out", "wb") as file:
        file.write(done.stdout)
    shown = subprocess.run(["ms_print", "--threshold=0", "massif.out"], capture_output=True, check=True)
    assert not shown.stderr, shown.stderr
    lines = [row for row in text.split("\n") if row and not row.startswith("#")]
    assert [row.split(":")[0] for row in lines[:3]] == ["desc", "cmd", "time_unit"], lines[:3]
    at, found = 3, []
    while at < len(lines):
        fields = dict(row.split("=", 1) for row in lines[at:at + 6])
        at += 6
        assert int(fields["snapshot"]) == len(found) and fields["mem_heap_extra_B"] == fields["mem_stacks_B"] == "0"
        tree = None
        if fields["heap_tree"] != "empty":
            tree, at = read_tree(lines, at, 0)
            assert tree[0] == int(fields["mem_heap_B"])
        found.append((int(fields["time"]), int(fields["mem_heap_B"]), fields["heap_tree"], tree))
    assert [one[0] for one in found] == sorted(one[0] for one in found)
    said = "".join(row for row in done.stderr.decode().splitlines(True) if "functions are not named" not in row)
    return found, shown.stdout.decode(), said


def read_tree(lines, at, depth):
    count, size, text = re.fullmatch(rf" {{{depth}}}n(\d+): (\d+) (.*)", lines[at]).groups()
    at += 1
    children = []
    for _ in range(int(count)):
        child, at = read_tree(lines, at, depth + 1)
        children.append(child)
    assert not children or sum(child[0] for child in children) == int(size), (lines[at - 1], size, children)
    return (int(size), text, children), at


ROOT = "(heap allocation functions) malloc/new/new[], --alloc-fns, etc."

# ---- a real program: its stacks begin with the innermost function; there is a snapshot of live memory, and also one of
# ---- the peak if the peak is known

path, offsets = program()
made = ledger(path, offsets, total_peak=6000, host_peak=6000, picture=(6000, 5900, 2 * 10**9))
made.fact(2, "shop --all")
python = made.node([made.python("main", "/opt/app.py", 3), made.python("load", "/opt/load.py", 12)])
made.count(made.site(0, stack=python, peak=900), alloc=(700, 7), free=(100, 1))
made.count(made.site(1), alloc=(250, 1))
made.count(made.site(0), alloc=(150, 1))
made.save("x.mst")
inner, outer = (f"0x{offset:X}" for offset in offsets)
shop = lambda size: (size, f"{inner}: order (shop.cc:{line('order')})", [
    (size, f"{inner}: shop::Shelf<long>::fill (shop.cc:{line('fill')})", [
        (size, f"{outer}: main (shop.cc:{line('main')})", [])])])
load = lambda size: (size, "0x0: py:load (load.py:12)", [(size, "0x0: py:main (app.py:3)", [])])
found, shown, said = massif("x.mst")
assert found == [(0, 0, "empty", None), (1000, 5900, "peak", (5900, ROOT, [shop(5000), load(900)])),
                 (2000, 4000, "detailed", (4000, ROOT, [
                     shop(3000), load(600), (150, "0x0: (call stack unknown)", []), (250, "0x0: shop", [])]))], found
assert not said and "Command:            shop --all" in shown and "1 (peak)" in shown, shown
assert f"84.75% (5,000B) {inner}: order (shop.cc:{line('order')})" in shown, shown
assert massif("x.mst", "--python")[0][-1][3] == (4000, ROOT, [load(600), (3400, "0x0: (no Python)", [])])
found, _, _ = massif("x.mst", "--match=load", "--by=site")
assert found[-1][3] == (600, ROOT, [load(600)]), found

# ---- the curve has at most a hundred points of the history; the snapshots with call stacks come in between

for i in range(4000):
    made.point(10**9 + i * 500_000, 1 + (100 * i if i < 1000 else i))
made.save("history.mst")
found, shown, said = massif("history.mst")
kinds = [one[2] for one in found]
assert kinds == ["empty"] * 51 + ["peak"] + ["empty"] * 50 + ["detailed"], kinds
assert (499, 99901) in [one[:2] for one in found] and max(one[1] for one in found) == 99901, found
assert not said and f"Number of snapshots: {len(found)}" in shown, shown
assert len(massif("history.mst", "--match=load")[0]) == 3

# ---- frames with the same text are one branch; small branches are merged; the depth is limited

tree = Ledger()
lib = tree.module("/opt/libx.so")
for size, names in ((5000, "main large"), (30, "main one"), (20, "main two"), (40, "main large"), (900, "other large"),
                    (10, "large")):
    frames = [tree.python(name, "/a.py", 2) for name in names.split()]
    tree.count(tree.site(lib, stack=tree.node(frames)), alloc=(size, 1))
tree.save("tree.mst")
place = lambda name: f"0x0: py:{name} (a.py:2)"
found, _, said = massif("tree.mst")
assert found[-1][2:] == ("peak", (6000, ROOT, [
    (5950, place("large"), [(5040, place("main"), []), (900, place("other"), []),
                            (10, "in 1 place, below massif's threshold (1.00%)", [])]),
    (50, "in 2 places, all below massif's threshold (1.00%)", [])])), found
found, _, _ = massif("tree.mst", "--min=0")
assert [child[:2] for child in found[-1][3][2]] == [(5950, place("large")), (30, place("one")), (20, place("two"))]
assert (10, "0x0: (outermost frame)", []) in found[-1][3][2][0][2]
found, _, _ = massif("tree.mst", "--min=5K")
assert found[-1][3][2] == [(5950, place("large"), [(5950, "in 3 places, all below massif's threshold (5120 bytes)",
                                                    [])]),
                           (50, "in 2 places, all below massif's threshold (5120 bytes)", [])], found
deep = Ledger()
recursion = [deep.python("again", "/a.py", 1)]
deep.count(deep.site(stack=deep.node(recursion * 5_000)), alloc=(1000, 1))
deep.count(deep.site(stack=deep.node(recursion * 5)), alloc=(1000, 1))
deep.save("deep.mst")
found, shown, _ = massif("deep.mst")
assert [one[1] for one in found] == [0, 2000] and shown.count("py:again") == 90, shown.count("py:again")

# ---- several snapshots of one process, in the order of their times; another order, or another process, is refused

for number, (live, peak, end) in enumerate(((400, 0, 2), (900, 1000, 4), (300, 2000, 6))):
    one = Ledger(end_ns=end * 10**9, total_peak=peak, host_peak=peak,
                 picture=(peak, peak, (end - 1) * 10**9) if peak else None)
    one.count(one.site(stack=one.node([one.python("f", "/a.py", 1)]), peak=peak or None), alloc=(live, 1))
    one.save(f"{number}.mst")
found, shown, _ = massif("0.mst", "1.mst", "2.mst")
assert [one[:3] for one in found] == [(0, 0, "empty"), (1000, 400, "peak"), (2000, 1000, "peak"),
                                      (3000, 900, "detailed"), (4000, 2000, "peak"), (5000, 300, "detailed")], found
assert "4 (peak)" in shown, shown
assert "1.mst was taken earlier than the file before it" in memstow("report", "--massif", "2.mst", "1.mst",
                                                                    status=2).stderr
Ledger(end_ns=0).save("killed.mst") # its end is not known: it is not put before the others
assert memstow("report", "--massif", "0.mst", "1.mst", "killed.mst").stdout.count("heap_tree=") >= 3
Ledger(pid=77).save("other.mst")
assert "other.mst is of another process" in memstow("report", "--massif", "0.mst", "other.mst", status=2).stderr
Ledger().save("empty.mst")
assert [one[:2] for one in massif("empty.mst")[0]] == [(0, 0), (2000, 0)]

# ---- names

sizes = _hostile.save("hostile.mst")
found, shown, _ = massif("hostile.mst", "--min=0")
assert found[-1][1] == sum(sizes.values()) and len(found[-1][3][2]) == len(sizes), len(found[-1][3][2])
text = open("massif.out", encoding="utf-8").read()
assert not any(ord(c) < 32 and c != "\n" or 0x7f <= ord(c) < 0xa0 for c in text)
assert max(map(len, text.split("\n"))) < 1300
