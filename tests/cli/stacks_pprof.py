# needs: cc deb:protobuf-compiler
"""--pprof: a profile that pprof can read, with four values a stack, mappings with build ids, labels, and inlined functions."""
import gzip, re, shutil, subprocess
from _stacks import BIAS, build_id, ledger, line, program
from support import MEMSTOW, ROOT, run, skip

if not shutil.which("protoc"):
    skip("needs protoc to read a profile with")


def profile(file, *options):
    """A profile as {field: [value…]}, messages alike, by the text that protoc makes of it."""
    packed = subprocess.run([MEMSTOW, "report", file, "--pprof", *options], capture_output=True, check=True).stdout
    text = subprocess.run(["protoc", f"-I{ROOT}/tools", "--decode=pprof.Profile", f"{ROOT}/tools/pprof.proto"],
                          input=gzip.decompress(packed), capture_output=True, check=True).stdout.decode()
    open_messages = [{}]
    for row in map(str.strip, text.splitlines()):
        if row == "}":
            open_messages.pop()
        elif row.endswith("{"):
            open_messages.append({})
            open_messages[-2].setdefault(row[:-2], []).append(open_messages[-1])
        else:
            name, value = row.split(": ", 1)
            open_messages[-1].setdefault(name, []).append(value[1:-1] if value[0] == '"' else value)
    return open_messages[0]


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


def text(message, name):
    return strings[number(message, name)]


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

# Opened by pprof itself, where there is a go.
if shutil.which("go"):
    with open("x.pb.gz", "wb") as out:
        subprocess.run([MEMSTOW, "report", "x.mst", "--pprof"], stdout=out, check=True)
    top = run("go", "tool", "pprof", "-top", "x.pb.gz", env={"HOME": ".", "PATH": "/usr/bin:/bin"}).stdout
    assert re.search(r"Type: inuse_space", top) and "py:load" in top and "shop::Shelf" in top, top
