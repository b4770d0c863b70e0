"""--folded writes one line for each stack, with the outermost frame first. Python's frames are marked, and no name
breaks a line. Options make owners the outermost frames, or leave out native frames. Stacks that are too small to be
seen are merged, and a line says so. The lines always add up to the whole."""
import pathlib, random, re
from _ledger import Ledger
from support import memstow

ledger = Ledger()
module = ledger.module("/opt/lib; odd.so")
python = ledger.python("run;it", "/opt/a b.py", 7)
stack = ledger.node([ledger.frame(0x10, module), python, ledger.frame(0x20, module)])
nameless = ledger.node([ledger.python("", "", 0)])
ledger.count(ledger.site(module, stack=stack), alloc=(500, 5), free=(200, 2))
ledger.count(ledger.site(module, stack=nameless), alloc=(20, 1))
ledger.count(ledger.site(module), alloc=(10, 1))
ledger.count(ledger.site(0), alloc=(5, 1))
ledger.count(ledger.site(module, stack=ledger.node([python])), alloc=(7, 1), free=(7, 1))
ledger.save("x.mst")



def told(done):
    """The lines on standard error, without those about missing libraries."""
    return "".join(line for line in done.stderr.splitlines(True) if "functions are not named" not in line)


WHOLE = """\
lib: odd.so+0x10;py:run:it (a b.py:7);lib: odd.so+0x20 300
py:(unknown) 20
lib: odd.so 10
(call stack unknown) 5
"""
for options in ((), ("--min=0",)):
    done = memstow("report", "x.mst", "--folded", *options)
    assert sorted(done.stdout.split("\n")) == sorted(WHOLE.split("\n")) and not told(done), (options, done)
done = memstow("report", "x.mst", "--folded", "--churn", "--top=1")
assert done.stdout == "lib: odd.so+0x10;py:run:it (a b.py:7);lib: odd.so+0x20 500\n(4 more) 42\n", done.stdout
assert told(done) == 'memstow: 4 call stacks are not shown by themselves: "(4 more)" has 42 B\n', done.stderr
assert memstow("report", "x.mst", "--folded", "--match=run;it").stdout.count("\n") == 1
Ledger(stacks=0).save("empty.mst")
assert memstow("report", "empty.mst", "--folded").stdout == ""
none = Ledger(stacks=0)
none.count(none.site(), alloc=(70, 1))
none.save("none.mst")
assert memstow("report", "none.mst", "--folded").stdout == "(no call sites) 70\n"


def folded(file, *options):
    """{stack: bytes}, and the lines on standard error."""
    done = memstow("report", file, "--folded", *options)
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    assert all(bytes != "0" for _, bytes in lines), done.stdout
    stacks = {}
    for stack, bytes in lines:
        stacks[stack] = stacks.get(stack, 0) + int(bytes)
    return stacks, told(done)


# ---- lines by owner, --python, and files that have the same name in every package (__init__.py)

MODEL, NODE, RUN, CUSTOM = 1, 2, 3, 4
made = Ledger()
lib = made.module("/opt/libx.so")
main = made.node([made.frame(0x10, lib), made.python("main", "/srv/app.py", 3)])
imports = made.node([made.frame(0x20, lib), made.python("_call", "<frozen importlib._bootstrap>", 9),
                     made.python("<module>", "/srv/custom_nodes/pack/__init__.py", 5), made.frame(0x30, lib)], main)
other = made.node([made.python("<module>", "/srv/custom_nodes/other/__init__.py", 5), made.frame(0x30, lib)], main)
native = made.node([made.frame(0x40, lib), made.frame(0x50, lib)])
unet, again = made.owner(MODEL, "UNET", "a.st"), made.owner(MODEL, "UNET", "a.st")
clip, cache = made.owner(MODEL, "CLIP;x", "b.st"), made.owner(CUSTOM, "cache")
node, run = made.owner(NODE, "Sampler", "node 3"), made.owner(RUN, "run 7")
for size, stack, tag in ((1000, imports, made.tag(unet, node, run)), (200, imports, made.tag(again)),
                         (30, other, made.tag(clip, node)), (4, native, made.tag(cache)), (5, native, 0),
                         (6, 0, made.tag(unet))):
    made.count(made.site(lib, tag=tag, stack=stack), alloc=(size, 1))
made.save("owned.mst")
PACK = ("libx.so+0x10;py:main (app.py:3);libx.so+0x20;py:_call (<frozen importlib._bootstrap>:9);py:<module> "
        "(pack/__init__.py:5);libx.so+0x30")
OTHER = "libx.so+0x10;py:main (app.py:3);py:<module> (other/__init__.py:5);libx.so+0x30"
NATIVE = "libx.so+0x40;libx.so+0x50"
for least in ((), ("--min=0",), ("--min=1",)):
    assert folded("owned.mst", *least) == ({PACK: 1200, OTHER: 30, NATIVE: 9, "libx.so": 6}, ""), least
    assert folded("owned.mst", "--by=model",
                  *least) == ({f"model:UNET (a.st);{PACK}": 1200, f"model:CLIP:x (b.st);{OTHER}": 30,
                               f"custom:cache;{NATIVE}": 4, f"(untagged);{NATIVE}": 5, "model:UNET (a.st);libx.so": 6},
                              ""), least
    assert folded("owned.mst", "--by=node", "--python", *least) == ({
        "node:Sampler (node 3);py:main (app.py:3);py:<module> (pack/__init__.py:5)": 1000,
        "node:Sampler (node 3);py:main (app.py:3);py:<module> (other/__init__.py:5)": 30,
        "(untagged);py:main (app.py:3);py:<module> (pack/__init__.py:5)": 200, "(untagged);(no Python)": 15}, ""), least
    assert folded("owned.mst", "--by=run", "--match=other", *least) == ({f"(untagged);{OTHER}": 30}, ""), least
assert folded("owned.mst", "--by=model",
              "--min=300") == ({f"model:UNET (a.st);{PACK}": 1200, "model:UNET (a.st);libx.so": 6, "(3 smaller)": 39},
                               'memstow: frames with less than 300 B are merged into "(n smaller)": 39 B\n'), folded(
                                   "owned.mst", "--by=model", "--min=300")

# ---- small branches are merged in place, by name

tree = Ledger()
top = tree.node([tree.python("main", "/a.py", 1)])
for size, name, line in ((900, "large", 2), (60, "twice", 3), (50, "twice", 3), (99, "small", 4), (98, "small", 5),
                         (10, "tiny", 6)):
    tree.count(tree.site(stack=tree.node([tree.python(name, "/a.py", line), tree.python("inner", "/a.py", 9)], top)),
               alloc=(size, 1))
tree.count(tree.site(stack=top), alloc=(7, 1))
tree.save("tree.mst")
WHERE = "py:main (a.py:1)"
assert folded("tree.mst",
              "--min=100") == ({WHERE: 7, f"{WHERE};py:large (a.py:2);py:inner (a.py:9)": 900,
                                f"{WHERE};py:twice (a.py:3);py:inner (a.py:9)": 110, f"{WHERE};(3 smaller)": 207},
                               'memstow: frames with less than 100 B are merged into "(n smaller)": 207 B\n'), folded(
                                   "tree.mst", "--min=100")
assert folded("tree.mst", "--min=2000")[0] == {"(1 smaller)": 1224}
assert len(folded("tree.mst", "--min=0")[0]) == 6 == len(folded("tree.mst")[0])

# ---- by default there is no more output than a flame graph can show, even for many small stacks or for deep ones

many = Ledger()
outer = many.node([many.python("main", "/a.py", 1)])
leaves = [many.python(f"leaf{n}", "/a.py", 10 + n) for n in range(60)]
for n in range(20_000):
    path = [leaves[n % 60], leaves[n // 60 % 60], leaves[n // 3600]]
    many.count(many.site(stack=many.node(path, outer)), alloc=(100 + n % 7, 1))
big = many.node([many.python("big", "/a.py", 2)], outer)
many.count(many.site(stack=big), alloc=(5_000_000, 1))
many.save("many.mst")
(stacks, said), (whole, _) = folded("many.mst"), folded("many.mst", "--min=0")
assert len(whole) == 20_001 and len(stacks) < 200, (len(whole), len(stacks))
assert sum(stacks.values()) == sum(whole.values()), (len(whole), len(stacks))
assert stacks["py:main (a.py:1);py:big (a.py:2)"] == 5_000_000
assert stacks["py:main (a.py:1);py:leaf5 (a.py:15);(60 smaller)"] == sum(100 + n % 7 for n in range(5, 20_000, 60))
merged = sum(bytes for stack, bytes in stacks.items() if stack.endswith(" smaller)"))
assert re.fullmatch(r'memstow: frames with less than 3\.4 KiB, 1/2000 of all, are merged into "\(n smaller\)": '
                    r'2\.0 MiB \(--min=0 merges nothing\)\n',
                    said) and merged == sum(whole.values()) - 5_000_000, (said, merged)

deep = Ledger()
recursion = deep.python("again", "/a.py", 1)
for depth in (10, 5_000):
    deep.count(deep.site(stack=deep.node([recursion] * depth)), alloc=(1000, 1))
deep.save("deep.mst")
stacks, said = folded("deep.mst")
assert len(stacks) == 2 and sum(stacks.values()) == 2000, stacks
assert said == ('memstow: frames deeper than 1,000 are merged into "(deeper)": 1000 B (--min=0 merges '
                'nothing)\n'), said
[deepest] = [stack for stack in stacks if stack.endswith(";(deeper)")]
assert stacks[deepest] == 1000 and deepest.count(";") == 1000, deepest.count(";")
assert {stack.count(";"): bytes for stack, bytes in folded("deep.mst", "--min=0")[0].items()} == {9: 1000, 4999: 1000}

# ---- for all options and all files, the lines add up to the same sum

OPTIONS = ((), ("--min=0",), ("--min=50K", "--by=node"), ("--python", "--by=model"), ("--python", "--min=0"),
           ("--top=3",))
random.seed(7)
for number in range(20):
    wild = Ledger()
    module = wild.module("/opt/libx.so")
    frames = [wild.frame(16 * i, module) for i in range(20)] + [wild.python(f"f{i}", "/a.py", i) for i in range(20)]
    nodes = [0]
    for _ in range(60):
        nodes.append(wild.node(random.choices(frames, k=random.randrange(6)), random.choice(nodes)))
    tags = [0] + [wild.tag(wild.owner(MODEL, f"m{i % 3}"), wild.owner(NODE, f"n{i}")) for i in range(5)]
    for _ in range(80):
        wild.count(wild.site(module, random.choice(tags), stack=random.choice(nodes)),
                   alloc=(random.randrange(1, 100_000), 1))
    content = bytearray(wild.bytes())
    for _ in range(number): # only the first file is whole; the others are damaged
        content[random.randrange(4096, len(content))] = random.randrange(256)
    pathlib.Path("wild.mst").write_bytes(content)
    done = [memstow("report", "wild.mst", "--folded", *options, status=None) for options in OPTIONS]
    assert {one.returncode for one in done} in ({0}, {3}), done
    sums = {sum(int(line.rsplit(" ", 1)[1]) for line in one.stdout.splitlines()) for one in done}
    assert len(sums) == 1 and (number or sums.pop() > 1_000_000), (number, sums)
