# needs: cc
"""A separate file with debug information is found in two ways. One is the build id, below /usr/lib/debug. The other is
the name in .gnu_debuglink, beside the program or below /usr/lib/debug. A file of another build is not used."""
import json, os, pathlib, shutil, subprocess
from _stacks import build_id, ledger, line, program
from support import MEMSTOW, run, skip

os.environ.pop("DEBUGINFOD_URLS", None)
os.environ["DEBUGINFOD_CACHE_PATH"] = "/nonexistent"
path, offsets = program()
other, _ = program("other", ("-O0", "-g", "-fno-optimize-sibling-calls", "-Wl,--build-id"))
FULL = [("order", line("order")), ("shop::Shelf<long>::fill", line("fill")), ("main", line("main"))]
NAMES = [("shop::Shelf<long>::fill", None), ("main", None)]
identity = build_id(path).hex()
run("objcopy", "--only-keep-debug", path, "right.debug")
run("objcopy", "--only-keep-debug", other, "wrong.debug")
run("strip", "--strip-debug", path)
ledger(path, offsets).save("x.mst")
DEBUG = f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug"


def stack(prepare="true"):
    """Empties /usr/lib/debug in a mount namespace, runs a shell command there, and then makes a report. Returns
    (function, line) for each frame."""
    script = f'mount -t tmpfs none /usr/lib/debug; {prepare}; exec "$@"'
    done = subprocess.run(["unshare", "--mount", "--map-root-user", "sh", "-ec", script, "sh", MEMSTOW, "report",
                           "x.mst", "--json"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done
    return [(frame["function"], frame["line"]) for frame in json.loads(done.stdout)["sites"][0]["stack"]]


def put(file):
    return f"mkdir -p {os.path.dirname(DEBUG)}; cp {file} {DEBUG}"


if subprocess.run(["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/usr/lib/debug"],
                  capture_output=True).returncode:
    skip("no mount namespace, or no /usr/lib/debug to put files into")
assert stack() == NAMES, stack()
assert stack(put("right.debug")) == FULL, stack(put("right.debug"))
assert stack(put("wrong.debug")) == NAMES, stack(put("wrong.debug"))
assert stack(put("/dev/null")) == NAMES, stack(put("/dev/null"))

# The file is found by its name, beside the program or below /usr/lib/debug. It is used if its checksum is right.
run("objcopy", "--add-gnu-debuglink=right.debug", path)
assert stack() == FULL, stack()
beside = pathlib.Path("right.debug").rename("elsewhere")
assert stack() == NAMES, stack()
assert stack(f"mkdir -p /usr/lib/debug{path.parent}; cp elsewhere /usr/lib/debug{path.parent}/right.debug") == FULL
shutil.copy("wrong.debug", "right.debug")
assert stack() == NAMES, stack()
