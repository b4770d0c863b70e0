"""While a Python program is still there, watch shows the threads that keep Python from ending. It gives the name of
each thread, whether Python waits for the thread, and the thread's functions. If the program has mapped a file,
watch shows the file's name and size."""
import pathlib, re, signal, subprocess

from support import MEMSTOW, PYTHON, run, skip, start, wait_for

if run(PYTHON, "-c", "import sys; print(sys.version_info[:2])").stdout.strip() not in ("(3, 11)", "(3, 12)"):
    skip("threads are read of Python 3.11 and 3.12")
pathlib.Path("app.py").write_text("""
import mmap, queue, signal, sys, threading, time
with open("weights.bin", "wb+") as file:
    file.truncate(32 << 20)
    weights = mmap.mmap(file.fileno(), 0)
def consume(jobs):
    jobs.get()
class Pump(threading.Thread):
    def __init__(self):
        super().__init__(name="pump")
        for i in range(40): # its attributes move to a dictionary of its own
            setattr(self, f"more{i}", i)
        self.__dict__
    def run(self):
        time.sleep(600)
threading.Thread(target=consume, args=(queue.Queue(),), name="consumer").start()
threading.Thread(target=consume, args=(queue.Queue(),), name="helper", daemon=True).start()
Pump().start()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
open("ready", "w").close()
time.sleep(600)
""")
process = start(MEMSTOW, "watch", "--quiet", "--grace=2s", "--end", "--", PYTHON, "app.py", stderr=subprocess.PIPE,
                text=True)
wait_for(lambda: pathlib.Path("ready").exists(), 60)
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=90)[1]
assert re.search(r"was asked to end, 1 process is still there", text), text
assert re.search(r"\(main thread\), since [^:]*: in futex; Python's main thread, .*in _shutdown \(threading.py\)",
                 text), text
assert re.search(
    r"since [^:]*: in \w+; Python waits for it at exit, 'consumer', in (wait \(threading.py\)|get \(queue.py\))",
    text), text
assert re.search(r"; Python's daemon, 'helper', in (wait \(threading.py\)|get \(queue.py\))", text), text
assert re.search(r"; Python waits for it at exit, 'pump', in run \(app.py\)", text), text
assert re.search(r"\d+ mappings of files, .*\n +\S*/weights.bin, 32.0 MiB\n(.*\n)* +and \d+ programs and libraries\n",
                 text), text
assert not re.search(r"\.(so[.\d]*|mst), \d", text), text
