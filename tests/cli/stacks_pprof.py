# needs: cc deb:golang-go deb:protobuf-compiler
"""--pprof writes a profile that pprof can read. The profile has four values for each stack, mappings with build ids,
labels, and inlined functions."""
import re, shutil, subprocess
from _ledger import Ledger
from _pprof import decode
from _stacks import BIAS, build_id, ledger, line, program
from support import MEMSTOW, run, skip

if not shutil.which("go") or not shutil.which("protoc"):
    skip("needs go and protoc to read a profile with")


def profile(file, *options):
    """The profile of a report, decoded."""
    packed = subprocess.run([MEMSTOW, "report", file, "--pprof", *options], capture_output=True, check=True).stdout
    return decode(packed)


path, offsets = program()
made = ledger(path, offsets)
tag = made.tag(model=made.owner(1, "unet"), run=made.owner(3, "run 7"))
python = made.node([made.python("load", "/opt/load.py", 12)])
made.count(made.site(0, tag, stack=python, peak=900), alloc=(700, 7), free=(100, 1))
made.count(made.site(0), alloc=(50, 1))
made.save("x.mst")

document = profile("x.mst")
strings = document["string_table"]


def number(message, name):
    return int(message.get(name, [0])[0])


def text(message, name, strings=strings):
    return strings[number(message, name)]


def stacks_of(document):
    """Returns {key: bytes in use}. A key is a tuple of function names, innermost first, and then labels. Asserts that
    the document has no location twice."""
    strings = document["string_table"]
    names = {number(one, "id"): text(one, "name", strings) for one in document["function"]}
    locations = {number(one, "id"): [names[number(row, "function_id")] for row in one["line"]]
                 for one in document["location"]}
    assert len(locations) == len(document["location"]) and len(names) == len(document["function"])
    stacks = {}
    for sample in document["sample"]:
        key = tuple(name for location in sample["location_id"] for name in locations[int(location)])
        key += tuple(sorted(text(one, "str", strings) for one in sample.get("label", [])))
        assert key not in stacks, key
        stacks[key] = int(sample["value"][3])
    return stacks


assert strings[0] == "" and len(strings) == len(set(strings))
assert [(text(one, "type"), text(one, "unit")) for one in document["sample_type"]] == [
    ("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]
assert text(document, "default_sample_type") == "inuse_space"
mapping, = document["mapping"]
assert text(mapping, "filename") == str(path) and text(mapping, "build_id") == build_id(path).hex()

functions = {number(one, "id"): (text(one, "name"), text(one, "filename")) for one in document["function"]}
locations = {number(one, "id"): [(*functions[number(row, "function_id")], number(row, "line")) for row in one["line"]]
             for one in document["location"]}
samples = [([int(value) for value in sample["value"]],
            [row for location in sample["location_id"] for row in locations[int(location)]],
            {text(one, "key"): text(one, "str") for one in sample.get("label", [])}) for sample in document["sample"]]
file = str(path.with_suffix(".cc"))
assert samples == [
    ([5, 5000, 3, 3000], [("order", file, line("order")), ("shop::Shelf<long>::fill", file, line("fill")),
                          ("main", file, line("main"))], {}),
    ([7, 700, 6, 600], [("py:load", "/opt/load.py", 12)], {"model": "unet", "run": "run 7"}),
    ([1, 50, 1, 50], [("(call stack unknown)", "", 0)], {})], samples
assert {number(one, "address") for one in document["location"] if number(one, "mapping_id")} == {
    BIAS + offset for offset in offsets}
churn = profile("x.mst", "--churn")
assert churn["string_table"][number(churn, "default_sample_type")] == "alloc_space"

# --by makes owners the outermost frames, --python leaves out native frames, --min and --top merge stacks. The sum is
# always the whole.
tree = Ledger()
lib = tree.module("/opt/libx.so")
top = tree.node([tree.frame(0x10, lib), tree.python("main", "/a.py", 1)])
unet = tree.tag(model=tree.owner(1, "UNET", "a.st"))
for size, name, tag in ((900, "large", unet), (60, "small", unet), (50, "tiny", unet), (40, "", 0)):
    tree.count(tree.site(lib, tag, stack=tree.node([tree.python(name, "/a.py", 2), tree.frame(0x20, lib)], top)),
               alloc=(size, 1))
tree.count(tree.site(lib, tag=unet), alloc=(7, 1))
tree.save("tree.mst")
OUT, IN, UNET = ("py:main", "libx.so+0x10"), ("libx.so+0x20",), "UNET (a.st)"
ROOT_NAME = (f"model:{UNET}",)
assert stacks_of(profile("tree.mst")) == {
    (*IN, "py:large", *OUT, UNET): 900, (*IN, "py:small", *OUT, UNET): 60, (*IN, "py:tiny", *OUT, UNET): 50,
    (*IN, "py:(unknown)", *OUT): 40, ("libx.so", UNET): 7}
assert stacks_of(profile("tree.mst", "--by=model", "--python")) == {
    ("py:large", "py:main", *ROOT_NAME, UNET): 900, ("py:small", "py:main", *ROOT_NAME, UNET): 60,
    ("py:tiny", "py:main", *ROOT_NAME, UNET): 50, ("py:(unknown)", "py:main", "(untagged)"): 40,
    ("(no Python)", *ROOT_NAME, UNET): 7}
assert stacks_of(profile("tree.mst", "--min=61")) == {
    (*IN, "py:large", *OUT, UNET): 900, ("(smaller)", *OUT, UNET): 110, ("(smaller)", *OUT): 40,
    ("libx.so", UNET): 7}
assert stacks_of(profile("tree.mst", "--top=2", "--by=run")) == {
    (*IN, "py:large", *OUT, "(untagged)", UNET): 900, (*IN, "py:small", *OUT, "(untagged)", UNET): 60,
    ("(3 more)",): 97}

# Models of one name from several files are told apart.
files = Ledger()
load = files.node([files.python("load", "/a.py", 5)])
for size, file in ((500, "a.st"), (300, "b.st")):
    files.count(files.site(0, files.tag(model=files.owner(1, "MODEL WAN21", file)), stack=load), alloc=(size, 1))
files.save("files.mst")
assert stacks_of(profile("files.mst")) == {
    ("py:load", "MODEL WAN21 (a.st)"): 500, ("py:load", "MODEL WAN21 (b.st)"): 300}

# pprof itself opens the profile, and leaves the names of Python functions and owners whole.
with open("x.pb.gz", "wb") as out:
    subprocess.run([MEMSTOW, "report", "x.mst", "--pprof"], stdout=out, check=True)
pprof = lambda *words: run("go", "tool", "pprof", *words, "x.pb.gz",
                           env={"HOME": ".", "PATH": "/usr/bin:/bin"}).stdout
top = pprof("-top")
assert re.search(r"Type: inuse_space", top) and "py:load" in top and "shop::Shelf" in top, top
of_model = pprof("-top", "-tagfocus=model=unet") # as docs/formats.md has it
assert "py:load" in of_model and "shop::Shelf" not in of_model, of_model
assert re.search(r"model: .*\n.*: unet\n", pprof("-tags")) and " unet" in pprof("-peek=unet", "-tagroot=model")
odd = Ledger()
model = odd.tag(model=odd.owner(1, "UNET <v2> [a::b]", "a.st"))
for name in ("<module>", "f.<locals>.<lambda>", "[x]"):
    odd.count(odd.site(0, model, stack=odd.node([odd.python(name, "/a.py", 1)])), alloc=(1000, 1))
odd.save("odd.mst")
with open("x.pb.gz", "wb") as out:
    subprocess.run([MEMSTOW, "report", "odd.mst", "--pprof", "--by=model"], stdout=out, check=True)
names = sorted(row.split(None, 5)[5] for row in pprof("-top").splitlines() if row.strip()[:1].isdigit())
assert names == ["model:UNET <v2> [a::b] (a.st)", "py:<module>", "py:[x]", "py:f.<locals>.<lambda>"], names
