# needs: cc
"""The report names the functions and lines of frames, and also inlined functions. The debug information may be in any
of its usual places, but must be of the same build."""
import os, pathlib, shutil
from _ledger import Ledger
from _stacks import BIAS, build_id, ledger, line, program
from support import compile, memstow, report, run

os.environ.pop("DEBUGINFOD_URLS", None)
path, offsets = program()
FILE = str(path.with_suffix(".cc"))
FULL = [("order", FILE, line("order")), ("shop::Shelf<long>::fill", FILE, line("fill")), ("main", FILE, line("main"))]
NAMES = [("shop::Shelf<long>::fill", None, None), ("main", None, None)]


def stack(**options):
    """Writes a ledger of the program with one stack. Returns (function, file, line) for each frame of the stack."""
    ledger(path, offsets, **options).save("x.mst")
    frames = report("x.mst")["sites"][0]["stack"]
    assert all(frame["kind"] == "native" and frame["module"] == str(path) for frame in frames), frames
    return [(frame["function"], frame["file"], frame["line"]) for frame in frames]


def said():
    return memstow("report", "x.mst").stderr


assert stack() == FULL, stack()
assert stack(identity=b"") == FULL and said() == "" # there is nothing to compare with
assert stack(bias=0) == FULL
assert stack(identity=bytes(20)) == [(None, None, None)] * 2
assert said() == f"memstow: {path} is not the build that the process ran: its functions are not named\n", said()

# The program loses its debug information, so lines are missing. Then it loses its symbol table, so names are missing,
# too. There is no message in either case.
whole, identity = path.with_name("whole"), build_id(path)
shutil.copy(path, whole)
run("strip", "--strip-debug", path)
assert stack() == NAMES and said() == "", stack()
assert "No debug information, so no lines and nothing inlined:\n  shop\n" in memstow("report", "x.mst").stdout
run("strip", path)
assert stack() == [(None, None, None)] * 2 and said() == ""

# The debug information is elsewhere: in debuginfod's cache, and beside the program.
cache = pathlib.Path("cache") / identity.hex()
cache.mkdir(parents=True)
os.environ["DEBUGINFOD_CACHE_PATH"] = str(cache.parent.resolve())
run("objcopy", "--only-keep-debug", whole, cache / "debuginfo")
assert stack() == FULL, stack()
(cache / "debuginfo").write_bytes(b"") # debuginfod writes this if no server had the file
assert stack() == [(None, None, None)] * 2
os.environ["DEBUGINFOD_CACHE_PATH"] = "/nonexistent"
pathlib.Path(".debug").mkdir()
run("objcopy", "--only-keep-debug", whole, ".debug/shop.debug")
run("objcopy", "--add-gnu-debuglink=.debug/shop.debug", path)
assert stack() == FULL, stack()

path.rename("gone")
assert stack(identity=b"") == [(None, None, None)] * 2
assert said() == f"memstow: {path} cannot be opened: its functions are not named\n", said()

# Names in other manglings are read from the symbol table alone. Most frames here are interrupted ones, whose addresses
# are not return addresses.
path = compile("""\
int legacy(int a) __asm__("_ZN5crate3run17h0123456789abcdefE");
int v0(int a) __asm__("_RNvCs1234_5crate4walk");
int plain(int a);
__attribute__((noinline)) int plain(int a) { return a + 1; }
__attribute__((noinline)) int legacy(int a) { return plain(a) + 2; }
__attribute__((noinline)) int v0(int a) { return legacy(a) + 3; }
int main(int n, char **a) { (void)a; return v0(n); }
""", "mangled", flags=("-O1", "-fno-optimize-sibling-calls"))
symbols = {name: int(value, 16) for value, _,
           name in (text.split(maxsplit=2) for text in run("nm", "--defined-only", path).stdout.splitlines()
                    if len(text.split()) == 3)}
made = Ledger()
module = made.module(str(path), bias=BIAS)
starts = [symbols["main"], symbols["_RNvCs1234_5crate4walk"], symbols["_ZN5crate3run17h0123456789abcdefE"],
          symbols["plain"]]
frames = [made.frame(BIAS + start, module, interrupted=True) for start in starts]
frames.append(made.frame(BIAS + symbols["plain"] + 1, module))
made.count(made.site(module, stack=made.node(frames)), alloc=(1, 1))
made.save("x.mst")
assert [frame["function"] for frame in report("x.mst")["sites"][0]["stack"]] == [
    "plain", "plain", "crate::run", "crate::walk", "main"], report("x.mst")["sites"][0]["stack"]
