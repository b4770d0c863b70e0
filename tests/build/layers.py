#!/usr/bin/env python3
"""The rooms of preload/ and tools/ are the rooms of the tables in docs/design.md, in the same order. Each room uses
only rooms above it in its table. Two things show what a room uses: its includes, and the symbols of its objects. cupti/
uses all rooms of preload/ but the hooks. Includes make no circle. Each include names its file by the path from the
root, so that this test overlooks no include. A circle of calls inside a room has at most five files. Only few files may
look inside a thread's slot."""
import collections, pathlib, re, subprocess

import support

FILES_MOST, CIRCLE_MOST = 32, 5
faults = []
HALL = {"preload": {"README.md", "memstow.map"}, "tools": {"README.md", "python", "comfyui", "completion", "web"}}
FEW = r"count/.*|hooks/hook_host\.c"
# The public header, which programs include, and headers that the build makes. They include nothing of ours.
OUTSIDE = {"memstow.h", "memstow_commit.h", "perfetto.pb-c.h", "pprof.pb-c.h"}
# Headers that only certain files may include, and these files.
INSIDE = {"preload/count/thread_inside.h": FEW, "preload/count/account_fast.h": FEW}


def table(hall):
    """The rooms of a floor, in the order of the table in docs/design.md."""
    text = (support.ROOT / "docs/design.md").read_text()
    rows = text.split(f"\n| {hall}/ |", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", rows, re.M)


def includes(path):
    """What a file includes of ours, by paths from the root."""
    found = re.findall(r'^\s*#\s*include\s*(?:"([^"]+)"|<((?:preload|tools|cupti|include)/[^>]+)>)', path.read_text(),
                       re.M)
    names = [quoted or angled for quoted, angled in found if quoted not in OUTSIDE]
    for name in names:
        if not re.match("(preload|tools|cupti|include)/", name):
            faults.append(f"{path.relative_to(support.ROOT)} includes {name}: not by its path from the root")
    return names


def circles(edges):
    """The strongly connected sets of more than one file (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            circle = []
            while not circle or circle[-1] != node:
                circle.append(stack.pop())
                on.discard(circle[-1])
            if len(circle) > 1:
                found.append(sorted(circle))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def objects(hall):
    """File without suffix -> its object, in this build."""
    targets = {"preload": ["libmemstow"], "tools": ["memstow_tool", "memstow"], "cupti": ["libmemstow_cupti"]}[hall]
    found = {}
    for target in targets:
        folder = support.BUILD / f"CMakeFiles/{target}.dir" / hall
        for path in folder.rglob("*.o"):
            name = str(path.relative_to(folder))[:-2]
            if (support.ROOT / hall / name).exists(): # otherwise the file has moved, and its object is an old one
                found[name[:-2]] = path
    return found


def calls(hall):
    """Returns a set of (user, owner, symbol): the object of the file `user` uses this symbol, which the object of the
    file `owner` defines."""
    owner, wanted = {}, collections.defaultdict(set)
    names = {str(path): name for name, path in objects(hall).items()}
    for line in subprocess.run(["nm", "-A", *names], capture_output=True, text=True, check=True).stdout.splitlines():
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            wanted[names[path]].add(symbol)
        elif kind in "TDBRVW":
            owner[symbol] = names[path]
    # The library exports some names of libc, such as pthread_create. A file that uses such a name means libc's
    # function, so this use is left out.
    exported = subprocess.run(["nm", "-D", "--defined-only", support.LIBRARY], capture_output=True, text=True,
                              check=True).stdout
    libc = {line.split()[-1].split("@")[0] for line in exported.splitlines()} if hall == "preload" else set()
    owner = {symbol: name for symbol, name in owner.items() if symbol not in libc or symbol.startswith("memstow_")}
    return {(name, owner[symbol], symbol) for name, symbols in wanted.items() for symbol in symbols
            if owner.get(symbol, name) != name}


def edge(hall, rank, here, there, how):
    """Notes a fault if a file uses a file of a room further down in the table."""
    a, b = here.split("/")[0], there.split("/")[0]
    if rank[a] >= rank[b]:
        return
    faults.append(f"{hall}: {here} -> {there}: {how}")


def check_circles(hall, found):
    """Notes a fault for each circle of calls that has more than CIRCLE_MOST files, all in one room."""
    inner = collections.defaultdict(set)
    for here, there, _ in found:
        if here.rpartition("/")[0] == there.rpartition("/")[0]:
            inner[here].add(there)
    assert len(inner) > 2, f"the calls of {hall}/ could not be read"
    for circle in circles(inner):
        if len(circle) > CIRCLE_MOST:
            faults.append(f"{hall}: a circle of {len(circle)} files: {' '.join(circle)}")


rooms = {hall: table(hall) for hall in HALL}
build = (support.ROOT / "CMakeLists.txt").read_text()
for hall, name in ("preload", "preload_rooms"), ("tools", "tool_rooms"):
    listed = re.search(rf"^set\({name} ([^)]+)\)", build, re.M)
    assert listed and listed[1].split() == rooms[hall], f"CMakeLists.txt has other rooms of {hall}/ than docs/design.md"

headers = collections.defaultdict(set)
for hall, order in rooms.items():
    rank = {room: at for at, room in enumerate(order)}
    inside = {path.name for path in (support.ROOT / hall).iterdir() if path.name != "__pycache__"}
    strange = inside ^ (set(order) | HALL[hall])
    if strange - {"README.md"}:
        faults.append(f"{hall}/ and the table of its rooms differ: {', '.join(sorted(strange))}")
    for room in order:
        files = [path for path in (support.ROOT / hall / room).iterdir() if path.suffix in (".c", ".h", ".S")]
        if len(files) > FILES_MOST:
            faults.append(f"{hall}/{room} has {len(files)} files: more than {FILES_MOST}")
        for path in files:
            here = f"{room}/{path.name}"
            for include in includes(path):
                floor, _, there = include.partition("/")
                headers[f"{hall}/{here}"].add(include)
                if include in INSIDE and not re.fullmatch(INSIDE[include], here):
                    faults.append(f"{hall}/{here} includes {include}: it is for {INSIDE[include]}")
                if floor == hall:
                    edge(hall, rank, f"{room}/{path.stem}", str(pathlib.Path(there).with_suffix("")), "by an include")
                elif (hall, floor) == ("tools", "preload") and not there.startswith("shared/"):
                    faults.append(f"{hall}/{here} includes {include}: the command shares preload/shared with the "
                                  f"library, no other room")
                elif floor in ("tools", "cupti"):
                    faults.append(f"{hall}/{here} includes {include}")
    found = sorted(calls(hall))
    assert len(found) > 300, f"the symbols of {hall}/ could not be read"
    for here, there, symbol in found:
        edge(hall, rank, here, there, f"calls {symbol}")
    check_circles(hall, found)

for path in (support.ROOT / "cupti").iterdir():
    for include in includes(path) if path.suffix in (".c", ".h") else ():
        headers[f"cupti/{path.name}"].add(include)
        if include.startswith(("tools/", "preload/hooks/")):
            faults.append(f"cupti/{path.name} includes {include}")
check_circles("cupti", calls("cupti"))

for circle in circles(headers):
    faults.append(f"headers include each other in a circle: {' '.join(circle)}")
assert not faults, "\n".join(faults)
