"""--speedscope writes a file for speedscope. Each measure is a sampled profile with the stacks of --folded. A line on
standard error says what is merged, and the weights always add up to the whole. Names from a ledger never break the
file. check() checks the file as https://www.speedscope.app/file-format-schema.json demands. The test
html/speedscope_reads uses the schema itself, and speedscope."""
import json, subprocess
import _hostile
from _ledger import Ledger
from _stacks import ledger, program
from support import MEMSTOW, memstow

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def check(document):
    """Raises an error unless the document has the form that speedscope's schema asks of sampled profiles, and unless
    its indices and sums are right. The schema says nothing about indices and sums."""
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert type(document["name"]) is type(document["exporter"]) is str
    assert set(document["shared"]) == {"frames"}
    for frame in document["shared"]["frames"]:
        assert set(frame) <= {"name", "file", "line", "col"} and type(frame["name"]) is str, frame
        assert type(frame.get("file", "")) is str and type(frame.get("line", 0)) is int, frame
    assert 0 <= document["activeProfileIndex"] < len(document["profiles"])
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}, set(profile)
        assert profile["type"] == "sampled" and profile["unit"] in UNITS and type(profile["name"]) is str
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["startValue"] == 0 and profile["endValue"] == sum(profile["weights"])
        for sample in profile["samples"]:
            assert sample and all(0 <= number < len(document["shared"]["frames"]) for number in sample), sample


def scope(file, *options):
    """Runs `memstow report --speedscope`. Returns {name of a profile: {stack: weight}}, the document, and standard
    error. A stack is a tuple of names, outermost first."""
    done = subprocess.run([MEMSTOW, "report", file, "--speedscope", *options], capture_output=True, check=True)
    document = json.loads(done.stdout.decode()) # strictly: all of it must be UTF-8
    check(document)
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found = {}
    for profile in document["profiles"]:
        stacks = found.setdefault(profile["name"], {})
        for sample, weight in zip(profile["samples"], profile["weights"]):
            stack = tuple(names[number] for number in sample)
            stacks[stack] = stacks.get(stack, 0) + weight
    said = "".join(line for line in done.stderr.decode().splitlines(True) if "functions are not named" not in line)
    return found, document, said


# ---- a real program, and the meaning of each measure

path, offsets = program()
made = ledger(path, offsets, total_peak=6000, host_peak=6000, picture=(6000, 5900, 2 * 10**9))
python = made.node([made.python("load", "/opt/load.py", 12)])
made.count(made.site(0, stack=python, peak=900), alloc=(700, 7), free=(100, 1))
made.count(made.site(0), alloc=(50, 1))
made.save("x.mst")
SHOP = ("main", "shop::Shelf<long>::fill", "order")
found, document, said = scope("x.mst")
assert found == {
    "live bytes": {SHOP: 3000, ("py:load",): 600, ("(call stack unknown)",): 50},
    "bytes at the peak": {SHOP: 5000, ("py:load",): 900},
    "live blocks": {SHOP: 3, ("py:load",): 6, ("(call stack unknown)",): 1},
    "allocated bytes": {SHOP: 5000, ("py:load",): 700, ("(call stack unknown)",): 50}}, found
assert not said and document["name"] == "program"
assert [profile["unit"] for profile in document["profiles"]] == ["bytes", "bytes", "none", "bytes"]
frames = {frame["name"]: frame for frame in document["shared"]["frames"]}
assert len(frames) == len(document["shared"]["frames"])
assert frames["order"] == {"name": "order", "file": str(path.with_suffix(".cc"))}, frames["order"]
assert frames["py:load"] == {"name": "py:load", "file": "/opt/load.py", "line": 12}, frames["py:load"]
active = lambda *options: scope("x.mst", *options)[1]["activeProfileIndex"]
assert (active(), active("--peak"), active("--churn")) == (0, 1, 3)
assert scope("x.mst", "--match=load")[0]["live bytes"] == {("py:load",): 600}

# ---- for all options, the stacks are the same as in --folded, and are merged in the same way

tree = Ledger()
lib = tree.module("/opt/libx.so")
top = tree.node([tree.frame(0x10, lib), tree.python("main", "/a.py", 1)])
unet, node = tree.owner(1, "UNET", "a.st"), tree.owner(2, "Sampler", "node 3")
for size, name, tag in ((900, "large", tree.tag(unet, node)), (60, "small", tree.tag(unet)), (50, "small", 0),
                        (40, "tiny", 0), (4, "tiny", tree.tag(node=node))):
    tree.count(tree.site(lib, tag, stack=tree.node([tree.python(name, "/a.py", 2), tree.frame(0x20, lib)], top)),
               alloc=(size, 1))
tree.count(tree.site(lib), alloc=(7, 1))
tree.save("tree.mst")
for options in ((), ("--min=0",), ("--min=70",), ("--by=model",), ("--by=node", "--python", "--min=45"), ("--top=2",),
                ("--top=0",), ("--python", "--by=run"), ("--match=small",)):
    done = memstow("report", "tree.mst", "--folded", *options)
    folded = {}
    for row in done.stdout.splitlines():
        stack, size = row.rsplit(" ", 1)
        names = tuple(name.removesuffix(" (a.py:1)").removesuffix(" (a.py:2)") for name in stack.split(";"))
        folded[names] = folded.get(names, 0) + int(size)
    found, _, said = scope("tree.mst", *options)
    assert found["live bytes"] == folded == found["allocated bytes"], (options, found, folded)
    assert all(f"memstow: live bytes: {row[9:]}" in said for row in done.stderr.splitlines()
               if "functions are not named" not in row), (options, said, done.stderr)
    assert sum(found["live blocks"].values()) == (2 if "--match=small" in options else 6), options

# A profile without bytes is left out, unless its measure is the chosen one. Live bytes are chosen if no option says
# otherwise.
gone = Ledger()
gone.count(gone.site(stack=gone.node([gone.python("f", "/a.py", 1)])), alloc=(30, 3), free=(30, 3))
gone.save("gone.mst")
for options, names in ((), {"live bytes", "allocated bytes"}), (("--churn",), {"allocated bytes"}):
    found, document, _ = scope("gone.mst", *options)
    assert set(found) == names and found["allocated bytes"] == {("py:f",): 30}, (options, found)
    assert document["activeProfileIndex"] == 0

Ledger().save("empty.mst")
found, _, _ = scope("empty.mst")
assert found == {"live bytes": {}}, found

# ---- depth, many stacks, and names

deep = Ledger()
recursion = deep.python("again", "/a.py", 1)
deep.count(deep.site(stack=deep.node([recursion] * 5_000)), alloc=(1000, 1))
deep.save("deep.mst")
found, document, said = scope("deep.mst")
assert len(document["profiles"][0]["samples"][0]) == 1001 and len(document["shared"]["frames"]) == 2
assert said.startswith('memstow: live bytes: frames deeper than 1,000 are merged into "(deeper)": 1000 B '
                       "(--min=0 merges nothing)\nmemstow: bytes at the peak: frames deeper"), said
assert "memstow: live blocks: frames deeper than 1,000 are merged into \"(deeper)\": 1 block (" in said
many = Ledger()
outer = many.node([many.python("main", "/a.py", 1)])
leaves = [many.python(f"leaf{n}", "/a.py", 10 + n) for n in range(60)]
for n in range(20_000):
    many.count(many.site(stack=many.node([leaves[n % 60], leaves[n // 60 % 60], leaves[n // 3600]], outer)),
               alloc=(100 + n % 7, 1))
many.save("many.mst")
found, document, said = scope("many.mst")
assert all(len(profile["samples"]) < 200 for profile in document["profiles"])
assert sum(found["live bytes"].values()) == sum(100 + n % 7 for n in range(20_000))
assert 'memstow: live blocks: frames with less than 11 blocks, 1/2000 of all, are merged into "(n smaller)":' in said

sizes = _hostile.save("hostile.mst")
for options in ((), ("--by=model",), ("--min=0", "--by=model")):
    found, document, _ = scope("hostile.mst", *options)
    assert sum(found["live bytes"].values()) == sum(sizes.values())
    assert max(len(frame["name"]) for frame in document["shared"]["frames"]) < 1100
    assert not any(ord(c) < 32 or 0x7f <= ord(c) < 0xa0 for frame in document["shared"]["frames"]
                   for c in frame["name"] + frame.get("file", "")), options
