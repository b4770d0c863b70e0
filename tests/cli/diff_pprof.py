# needs: cc deb:golang-go deb:protobuf-compiler
"""diff --pprof writes a profile like pprof's own with -diff_base, and pprof reads it: values of A are negative, and
have the label of the base."""
import gzip, os, pty, re, shutil, subprocess
import _hostile
from _ledger import Ledger
from _stacks import ledger, program
from support import MEMSTOW, ROOT, run, skip

if not shutil.which("go") or not shutil.which("protoc"):
    skip("needs go, for its pprof, and protoc")


def write(to, *command):
    with open(to, "wb") as out:
        subprocess.run([MEMSTOW, *command], stdout=out, stderr=subprocess.DEVNULL, check=True)
    return to


def pprof(*arguments):
    return run("go", "tool", "pprof", *arguments, env={"HOME": ".", "PATH": "/usr/bin:/bin"}).stdout


def samples(raw):
    """Reads the output of -raw. Returns {(functions, of_base): (objects, bytes)}. The functions are a tuple, innermost
    first. of_base says whether the sample belongs to the base."""
    text, _, rest = raw.partition("\nLocations\n")
    locations = {}
    for row in rest.partition("Mappings\n")[0].splitlines():
        if found := re.match(r"\s+(\d+): 0x\w+ (?:M=\d+ )?(.*)", row):
            number = found[1]
            locations[number] = []
            row = " " * 13 + found[2]
        locations[number].append(re.sub(r" \S*:\d+(:\d+)? s=\d+(\(.*\))?$", "", row.strip()))
    found = {}
    for row in text.partition("\nSamples:\n")[2].splitlines()[1:]:
        if ":" in row and re.match(r"\s*-?\d+\s+-?\d+: ", row):
            values, numbers = row.split(": ")
            stack = tuple(name for number in numbers.split() for name in locations[number])
            key = stack, False
            found[key] = tuple(a + b for a, b in zip(found.get(key, (0, 0)), map(int, values.split())))
        elif "pprof::base:[true]" in row.replace(" ", ""):
            figures = tuple(map(int, values.split()))
            found[key] = tuple(a - b for a, b in zip(found[key], figures))
            if found[key] == (0, 0):
                del found[key]
            key = stack, True
            found[key] = tuple(a + b for a, b in zip(found.get(key, (0, 0)), figures))
    return found


path, offsets = program()


def made(grown, more, **header):
    one = ledger(path, offsets, **header)
    tag = one.tag(model=one.owner(1, "unet", "a.st"))
    for name, size in more.items():
        one.count(one.site(0, tag, stack=one.node([one.python(name, "/opt/load.py", 12)])), alloc=(size, size // 10))
    if grown:
        one.count(one.site(1, stack=one.nodes and 1), alloc=(grown, 1))
    return one


made(0, {"load": 500, "gone": 70, "same": 90}).save("a.mst")
made(1000, {"load": 800, "new": 40, "same": 90}, pid=2000, run_id=b"b" * 16).save("b.mst")
write("diff.pb.gz", "diff", "a.mst", "b.mst", "--pprof")
SHOP = ("order", "shop::Shelf::fill", "main") # names as pprof shortens them
found = samples(pprof("-raw", "diff.pb.gz"))
assert found == {((*SHOP,), True): (-3, -3000), ((*SHOP,), False): (4, 4000), (("py:load",), True): (-50, -500),
                 (("py:load",), False): (80, 800), (("py:gone",), True): (-7, -70), (("py:new",), False): (4, 40),
                 (("py:same",), True): (-9, -90), (("py:same",), False): (9, 90)}, found

# The figures are equal to those that pprof computes from two reports (-diff_base). Percentages relate to the base.
write("a.pb.gz", "report", "a.mst", "--pprof")
write("b.pb.gz", "report", "b.mst", "--pprof")
rows = lambda text: sorted(row.strip() for row in text.splitlines() if re.match(r"\s+-?[\d.]+\w* ", row))
options = ("-top", "-unit=B", "-nodefraction=0", "-sample_index=inuse_space")
ours, theirs = pprof(*options, "diff.pb.gz"), pprof(*options, "-diff_base=a.pb.gz", "b.pb.gz")
assert rows(ours) == rows(theirs) and len(rows(ours)) == 6, (ours, theirs)
assert "1270B, 34.70% of 3660B total" in ours, ours
assert "py:load" in pprof("-top", "-tagfocus=model=unet", "diff.pb.gz")

# With --by=model the outermost frames are owners. The stacks that --top leaves out are summed as "(3 more)".
write("by.pb.gz", "diff", "a.mst", "b.mst", "--pprof", "--by=model", "--top=2")
found = samples(pprof("-raw", "by.pb.gz"))
assert found[("py:load", "model:unet (a.st)"), False] == (80, 800), found
assert found[(*SHOP, "(untagged)"), False] == (4, 4000) and found[("(3 more)",), True] == (-16, -160), found

# Models of one name from two files have labels of their own.
def two_files(a_size, b_size, **header):
    one = ledger(path, offsets, **header)
    for file, size in (("a.st", a_size), ("b.st", b_size)):
        tag = one.tag(model=one.owner(1, "MODEL WAN21", file))
        one.count(one.site(0, tag, stack=one.node([one.python("load", "/opt/load.py", 5)])), alloc=(size, 1))
    return one


two_files(900, 100).save("files.a.mst")
two_files(200, 800, pid=2000, run_id=b"b" * 16).save("files.b.mst")
write("files.pb.gz", "diff", "files.a.mst", "files.b.mst", "--pprof")
tags = pprof("-tags", "-unit=B", "-sample_index=inuse_space", "files.pb.gz")
assert "MODEL WAN21 (a.st)" in tags and "MODEL WAN21 (b.st)" in tags, tags
grown = pprof("-top", "-unit=B", "-sample_index=inuse_space", r"-tagfocus=model=\(b\.st\)", "files.pb.gz")
assert re.search(r"\b700B .* py:load", grown), grown

write("python.pb.gz", "diff", "a.mst", "b.mst", "--pprof", "--python")
found = samples(pprof("-raw", "python.pb.gz"))
assert found[("(no Python)",), False] == (4, 4000) and found[("py:load",), False] == (80, 800), found
assert not any("main" in stack for stack, _ in found), found

# One side is empty; both are empty; names are hostile.
Ledger().save("empty.mst")
for a, b, total in (("empty.mst", "b.mst", 4930), ("b.mst", "empty.mst", -4930), ("empty.mst", "empty.mst", 0)):
    write("one.pb.gz", "diff", a, b, "--pprof")
    assert sum(size for _, size in samples(pprof("-raw", "one.pb.gz")).values()) == total, (a, b)
sizes = _hostile.save("hostile.mst")
write("hostile.pb.gz", "diff", "empty.mst", "hostile.mst", "--pprof", "--by=model")
assert f"Total samples = {sum(sizes.values())}B" in pprof("-top", "-unit=B", "hostile.pb.gz").replace(
    ", ", "") or f"{sum(sizes.values())}B total" in pprof("-top", "-unit=B", "hostile.pb.gz")
subprocess.run(["protoc", f"-I{ROOT}/tools/export", "--decode=pprof.Profile", f"{ROOT}/tools/export/pprof.proto"],
               input=gzip.decompress(open("hostile.pb.gz", "rb").read()), stdout=subprocess.DEVNULL, check=True)

# A compressed file does not go to a terminal.
main, terminal = pty.openpty()
refused = subprocess.run([MEMSTOW, "diff", "a.mst", "b.mst", "--pprof"], stdout=terminal, stderr=subprocess.PIPE)
os.close(terminal)
assert refused.returncode == 2 and b"--pprof writes a compressed file" in refused.stderr
