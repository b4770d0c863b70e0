"""A program with one module that allocates, and others that keep the memory, each in its own way; for holders.py and
holders_objects_long.py."""
import pathlib

import support
from _keepers import KEEPERS
from _leaks import brief, functions, leaks, waiting

RUNS, SIZE = 14, 40_000
# The objects that are kept. Each is allocated by a function of its own, make_NAME in the module maker.
THINGS = {"dictionary": "bytearray(SIZE)", "module_list": "bytes(SIZE)", "closure": "numpy.ones(SIZE // 8)",
          "thread": "torch.zeros(SIZE // 4)", "class_attribute": "'x' * SIZE", "lru_cache": "numpy.ones(SIZE // 8)[8:]",
          "instance": "Image.new('RGB', (120, 120))", "slots": "[float(run) for run in range(SIZE // 8)]",
          "traceback": "{number: None for number in range(1500)}", "generator": "mmap.mmap(-1, 1 << 16)",
          "task": "{*range(1000)}", "finalizer": "array.array('d', bytes(SIZE))",
          "callback": "torch.zeros(SIZE // 4)[100:]", "default": "(*range(SIZE // 8),)", "untracked": "bytes(SIZE)",
          "queue": "memoryview(bytearray(SIZE))"}
assert THINGS.keys() == KEEPERS.keys()

folder = pathlib.Path("modules")
folder.mkdir()
for name, source in KEEPERS.items():
    (folder / f"keep_{name}.py").write_text(source)
(folder / "maker.py").write_text("import array, mmap\nimport numpy, torch\nfrom PIL import Image\nSIZE = " + str(SIZE) +
                                 "\n" + "".join(f"def make_{name}():\n    return {thing}\n"
                                                for name, thing in THINGS.items()))
SOURCE = f"""
import importlib
sys.path.insert(0, {str(folder.resolve())!r})
import maker, memstow
names = {list(KEEPERS)!r}
keepers = {{name: importlib.import_module(f"keep_{{name}}") for name in names}}
node = memstow.owner("Maker", "node", "node 1", keys=(1, 1))
for run in range({RUNS}):
    with memstow.run(f"run {{run}}"), memstow.scope(node):
        for name in names:
            keepers[name].keep(getattr(maker, f"make_{{name}}")(), run)
"""


def look(program, *options):
    return leaks(program.pid(), "--top=100", *options, status=1)


def made(leak):
    """The name of the function that allocated the leaked object."""
    return next(name.removeprefix("make_").split(".")[0] for name in functions(leak["stack"])
                if name.startswith("make_"))


def check(document, where):
    found = {made(leak): leak for leak in document["leaks"]}
    assert found.keys() == KEEPERS.keys(), (where, sorted(found), brief(document))
    assert len(document["leaks"]) == len(KEEPERS) == document["found"], (where, sorted(found), brief(document))
    for name, leak in found.items():
        assert leak["held_by"] == f"keep_{name}", (where, name, leak["held_by"], leak["holders"])
        assert f"keep_{name}" in leak["held_at"] or name in (
            "thread", "generator", "task"), (where, name, leak["held_at"])
        assert leak["node"] == "Maker" and leak["bytes_per_run"] >= SIZE * 0.7, (where, leak)
        assert list(leak)[:2] == ["held_by", "held_at"], list(leak)


def find_all(options, file):
    """Starts the program with these options of `memstow run`, and finds each holder."""
    program = waiting(SOURCE, file=file, options=options)
    document = look(program)
    assert not any(leak["held_by"] for leak in document["leaks"]), "nobody has asked"
    assert "memstow leaks" in support.memstow(
        "leaks", program.pid(), status=1).stdout.split("What holds this: ")[1].split("\n")[0]
    assert not any(leak["held_by"] for leak in look(program, "--timeout=0")["leaks"])
    for _attempt in range(5): # on a loaded machine there may not be enough time for all of them at once
        if "no time for all" not in support.memstow("leaks", program.pid(), "--holders", status=1).stderr:
            break
    check(look(program, "--holders"), f"live {options}")
    said = support.memstow("decisions", program.pid(), "--json").stdout.count('"HELD"')
    check(look(program), "what is known stays known")
    check(look(program, "--holders"), "and is asked for once")
    assert support.memstow("decisions", program.pid(),
                           "--json").stdout.count('"HELD"') == said, "nothing was asked again"
    support.memstow("snapshot", program.pid(), "-o", f"{file}.snapshot")
    check(leaks(f"{file}.snapshot", status=1), "snapshot")
    text = support.memstow("leaks", program.pid(), "--top=100", status=1).stdout
    print(text)
    blocks = text.split("Growing\n")[1].split("Not counted as leaks\n")[0].split("held by ")[1:]
    assert {block.split("\n")[0].split(".")[0].split(":")[0]
            for block in blocks} == {f"keep_{name}" for name in KEEPERS}, blocks
    for block in blocks: # the holder comes before the code that allocated
        assert "node Maker (node 1)" in block, block
    assert max(map(len, text.split("\n"))) <= 80, text
    program.end()
    print(f"{len(KEEPERS)} ways to keep what another module allocated, in {RUNS} runs: each is named")
