"""If a program runs on after its main thread has come to its end, watch names the program and its growth, although
nobody asked the program to end. watch does not end the program, even under --end. This holds for:
- Python that waits at its exit for a thread, also if a launcher script started Python;
- Python that waits at its exit for a child of multiprocessing;
- a program in C whose first thread has ended.
watch does not name a program whose main thread waits for another thread in the middle of its work. With --pid, watch
shows the same for a process that already runs."""
import pathlib, re, subprocess

from _ends import faults
from support import MEMSTOW, PYTHON, memstow, run, skip, start

if run(PYTHON, "-c", "import sys; print(sys.version_info[:2])").stdout.strip() not in ("(3, 11)", "(3, 12)"):
    skip("threads are read of Python 3.11 and 3.12")
pathlib.Path("app.py").write_text("""
import multiprocessing, os, sys, threading, time
def pump():
    kept = []
    while not os.path.exists("enough"):
        kept.append(bytearray(15000))
        time.sleep(0.1)
    open(f"{sys.argv[1]}.over", "w").close()
if sys.argv[1] == "process":
    multiprocessing.Process(target=pump).start()
else:
    thread = threading.Thread(target=pump, name="pump")
    thread.start()
    if sys.argv[1] == "joins":
        thread.join()
""")


def watch(*command):
    return start(MEMSTOW, "watch", "--quiet", "--end", "--", *command, stderr=subprocess.PIPE, text=True)


processes = {name: watch(PYTHON, "app.py", name) for name in ("thread", "process", "joins")}
processes["script"] = watch("sh", "-c", f"{PYTHON} app.py script; true")
processes["first"] = watch(faults(), "here", "first-ends", "seconds=600", "until=enough")
# Each program runs on until watch has named every program that it is to name.
texts = {name: "" if name == "joins" else process.stderr.readline() for name, process in processes.items()}
assert not list(pathlib.Path().glob("*.over"))
pid = re.fullmatch(
    r"memstow: \S+ s after the main thread of python\S*, pid (\d+), came to its end, 1 process is still there\n",
    texts["thread"])[1]
now = memstow("watch", f"--pid={pid}", "--grace=2s").stdout
pathlib.Path("enough").touch()
texts = {name: texts[name] + process.stderr.read() for name, process in processes.items()}
assert all(process.wait(30) == 0 for process in processes.values()), texts
assert all(pathlib.Path(f"{name}.over").exists() for name in ("thread", "process", "joins", "script"))
for text in (texts["thread"], now):
    # If the resident memory did not grow between two looks, watch says that the live memory grows.
    assert re.search(r"pid \d+ \(the program itself\): .*(, |\n +its live memory )grows by \d+\.\d KiB/s", text), text
    assert "py pump  app.py:6\n" in text and "in _shutdown (threading.py)" in text, text
    assert "Python waits for it at exit, 'pump', in pump (app.py)" in text, text
assert texts["joins"] == "", texts["joins"]
assert re.search(r"main thread of python\S*, pid \d+, came to its end, 2 processes are still there",
                 texts["script"]), texts["script"]
assert re.search(r"main thread of python\S*, pid \d+, came to its end, 2 processes are still there",
                 texts["process"]), texts["process"]
assert "in _exit_function (util.py)" in texts["process"] or "in poll (popen_fork.py)" in texts["process"], texts[
    "process"]
assert re.search(r"main thread of faults, pid \d+, came to its end, 1 process is still there",
                 texts["first"]), texts["first"]
assert not any("ended on" in text or "is left" in text for text in texts.values()), texts
assert "no such process" in memstow("watch", f"--pid={pid}", status=3).stderr
