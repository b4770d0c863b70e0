"""Drains (handlers of the stage DRAIN) run side by side. A drain has ten seconds, unless it asks for less or more time.
All drains together have ten seconds, or the longest time that a drain asks for, if that is longer. A drain that has not
begun by then does not begin. If a drain A asks for more than ten seconds and takes more than ten seconds, a drain B
that depends on A still runs after A. If a drain fails or takes too long, the cancel handlers run after the drains. The
drains are in C, in Python, and in both languages at once."""
import json, os, pathlib, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, compile, start

program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))

static int32_t quick(void *nothing) { (void)nothing; return 0; }
static int32_t stuck(void *nothing) { (void)nothing; for (;;) pause(); return 0; }
static int32_t long_one(void *nothing) { (void)nothing; usleep(10500000); return 0; }
static int32_t late(void *nothing) {
    (void)nothing;
    puts("it begins though there is no time"), fflush(stdout);
    return 0;
}
static void add(unsigned stage, const char *name, const char *after, int ms, int32_t (*run)(void *)) {
    struct memstow_handler handler = {sizeof handler, stage, name, after, ms, 0, run, NULL};
    if (CALL(shutdown_handler)(&handler) < 0) printf("%s\n", CALL(error)());
}

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "turns")) {
        add(MEMSTOW_DRAIN, "first", "", 25000, long_one);
        add(MEMSTOW_DRAIN, "second", "first", 0, quick);
        add(MEMSTOW_CANCEL, "cancel", "", 0, quick);
        return CALL(shutdown)("the test", 0, 76) != 0;
    }
    int ms = !strcmp(argv[1], "short") ? 3000 : !strcmp(argv[1], "long") ? 11000 : 0;
    add(MEMSTOW_DRAIN, "first", "", ms, stuck);
    add(MEMSTOW_DRAIN, "second", "", ms ? 1000 : 0, stuck);
    add(MEMSTOW_DRAIN, "third", "", 0, quick);
    if (!ms) add(MEMSTOW_DRAIN, "its turn never comes", "first", 0, late);
    add(MEMSTOW_CANCEL, "cancel", "", 0, quick);
    return CALL(shutdown)("the test", 0, 76) <= 0;
}
""", "drainer", ("-O1", "-g", "-I", ROOT / "include"))
pathlib.Path("drainer.py").write_text(r"""
import ctypes, sys, threading, time
import memstow_shutdown as shutdown

seconds = {"seconds": 3} if sys.argv[1] == "short" else {}
begun = time.monotonic()
if sys.argv[1] == "turns":
    shutdown.handler(lambda: time.sleep(10.5), "first", stage="drain", seconds=25)
    shutdown.handler(lambda: None, "second", stage="drain", after=["first"])
    shutdown.handler(lambda: None, "cancel", stage="cancel")
    sys.exit(len(shutdown.run("the test").failed))
shutdown.handler(lambda: time.sleep(60), "first", stage="drain", **seconds)
shutdown.handler(lambda: time.sleep(60), "second", stage="drain", **seconds)
shutdown.handler(lambda: None, "third", stage="drain")
if not seconds:
    shutdown.handler(lambda: print("it begins though there is no time"), "its turn never comes", stage="drain",
                     after=["first"])
shutdown.handler(lambda: print(time.monotonic() - begun), "cancel", stage="cancel")
if sys.argv[1] == "both": # and one in C
    class Handler(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint32), ("stage", ctypes.c_uint32),
                    ("name", ctypes.c_char_p), ("after", ctypes.c_char_p),
                    ("ms", ctypes.c_uint32), ("parallel", ctypes.c_uint32),
                    ("run", ctypes.c_void_p), ("context", ctypes.c_void_p)]
    def wait(context):
        time.sleep(60)
        return 0
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(wait)
    run = ctypes.cast(function, ctypes.c_void_p).value
    handler = Handler(ctypes.sizeof(Handler), 2, b"in C", None, 0, 0, run, None)
    assert ctypes.CDLL(None).memstow_shutdown_handler(ctypes.byref(handler)) == 0
print(len(shutdown.run("the test").failed))
""")


def begin(name, *command, tracked=True):
    """A life in a folder of its own. Several run at once."""
    folder = HERE / name
    folder.mkdir()
    before = [MEMSTOW, "run", "--quiet", "-o", "x.mst", "--"] if tracked else []
    return folder, start(*before, *command, cwd=folder, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})


def end(life):
    folder, process = life
    out = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and "no time" not in out, out
    log = folder / "shutdown.log"
    return out.split(), [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def drained(lines):
    """Returns the time in the log's line for the cancel handler, in ms, and the result of each drain by its name."""
    return (next(line["ms"] for line in lines if line["step"] == "cancel"),
            {line["name"]: line["result"] for line in lines if line["step"] == "drain"})


script = HERE / "drainer.py"
lives = {word: begin(f"c {word}", program, word) for word in ("short", "long", "usual")}
lives |= {f"python {word}": begin(word, PYTHON, script, word) for word in ("short", "both", "turns")}
lives["turns"] = begin("c turns", program, "turns")
lives["alone"] = begin("alone", PYTHON, script, "short", tracked=False)

for word in ("short", "python short"):
    ms, results = drained(end(lives[word])[1])
    assert 2900 < ms < 5900, (word, ms) # together, not six seconds in turn
    assert results == {"first": -110, "second": -110, "third": 0}, results
seconds, failed = end(lives["alone"])[0]
assert 2.9 < float(seconds) < 5.9 and failed == "2", (seconds, failed)
out, lines = end(lives["usual"])
ms, results = drained(lines)
assert 9900 < ms < 19000, ms
assert results == {"first": -110, "second": -110, "third": 0, "its turn never comes": -110}, results
assert lines[0]["step"] == "begin" and lines[0]["limit_ms"] == 30000, lines[0]
out, lines = end(lives["python both"])
ms, results = drained(lines)
assert 9900 < ms < 19000, (ms, results)
assert results["in C"] == results["first"] == results["its turn never comes"] == -110, (ms, results)
for word in ("turns", "python turns"):
    results = {line["name"]: line["result"] for line in end(lives[word])[1] if line["step"] in ("drain", "cancel")}
    assert results == {"first": 0, "second": 0}, (word, results)
ms, results = drained(end(lives["long"])[1])
assert 10900 < ms < 19000 and results["first"] == results["second"] == -110, (ms, results)
