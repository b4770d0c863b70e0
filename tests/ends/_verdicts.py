"""For lifecycle_verdicts.py and lifecycle_verdicts_long.py: a program that can be slow to close in the ways that
lifecycle judges, and functions that begin and end one life of this program."""
import json, pathlib, subprocess

from support import MEMSTOW, PYTHON, start

WAYS = """
import signal, sys, threading, time
way, seconds = sys.argv[1], float(sys.argv[2])
closed, kept = threading.Event(), [bytearray(b"x") * (60 << 20)]
def after_close():
    closed.wait()
    time.sleep(seconds)
def grow(bytes_a_second):
    for _ in range(int(seconds * 10)):
        kept.append(bytearray(b"x") * (bytes_a_second // 10))
        time.sleep(0.1)
def close(*_):
    closed.set()
    if way in ("slow", "daemon"):
        time.sleep(seconds)
    if way.startswith("grows="):
        grow(int(way[6:]))
    sys.exit(0)
if way in ("thread", "daemon"):
    threading.Thread(target=after_close, daemon=way == "daemon").start()
signal.signal(signal.SIGTERM, close)
print("ready", flush=True)
time.sleep(600)
"""


def begin(way, seconds, *options):
    """Starts one life of the program WAYS. `way` says how the program closes, and `seconds` how long that takes."""
    name = f"{way}{len(options)}"
    if not (app := pathlib.Path("app.py")).exists(): # an earlier life may be about to read it
        app.write_text(WAYS)
    pathlib.Path(f"{name}.scenario").write_text(
        f"program: {PYTHON} {{here}}/app.py {way} {seconds}\nready: says ready\n")
    return start(MEMSTOW, "lifecycle", "--json", "--test=T1", "--repeat=1", "--untracked", *options, f"{name}.scenario",
                 stdout=subprocess.PIPE, text=True)


def end(process):
    """Waits for the end of a life that begin() has started. Returns the exit status of memstow, and the verdict, the
    reasons and the whole JSON of the life."""
    life, = json.loads(process.communicate(timeout=100)[0])["lives"]
    return process.returncode, life["verdict"], life["reasons"], life
