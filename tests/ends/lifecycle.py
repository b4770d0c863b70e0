"""lifecycle has six tests of a program, and gives a verdict on each life of the program. A program that ends at once
passes. A program fails if a child stays, if something is left in the system, or if the program crashes. A test whose
steps the scenario lacks is skipped."""
import json, pathlib, signal, subprocess


from _ends import faults, pids
from support import MEMSTOW, PYTHON, is_gone, memstow, start, wait_for

faults()
pathlib.Path("server.py").write_text("""
import http.server, os, signal, subprocess, sys, threading
fault, child = sys.argv[2], None

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200), self.end_headers(), self.wfile.write(b"{}")
    def do_POST(self):
        global child
        if self.path == "/queue":
            threading.Timer(0.3, lambda: print("all done", flush=True)).start()
        if self.path == "/child":
            child = subprocess.Popen(["./faults", "here", "leak", "seconds=30"])
        if self.path == "/crash":
            os.abort()
        self.do_GET()
    def log_message(self, *words): pass

def close(*_):
    if child and fault != "child":
        child.terminate(), child.wait()
    if fault == "crash":
        os.abort()
    threading.Thread(target=server.shutdown).start()

signal.signal(signal.SIGTERM, close)
if fault == "shared":
    open(f"/dev/shm/memstow-ends-{os.getpid()}", "w").write("x")
    kept = open(f"/dev/shm/memstow-ends-{os.getpid()}")
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.serve_forever()
""")


def lives(fault, *options, status=0, steps=""):
    pathlib.Path("x.scenario").write_text(f"""program: {PYTHON} {{here}}/server.py {{port}} {fault}
ready: http GET / within 60s
queue: http POST /queue
finish: says all done
cancel: http POST /cancel
child: http POST /child
{steps}""")
    done = memstow("lifecycle", "--json", "--repeat=1", *options, "x.scenario", status=status)
    document = json.loads(done.stdout)
    assert document["format"] == "memstow-lifecycle" and document["version"] == 1
    return document


document = lives("none")
assert [life["test"] for life in document["lives"]] == ["T1", "T3", "T4", "T5", "T6"] and document["skipped_tests"] == 1
for life in document["lives"]:
    assert life["verdict"] == "passed" and not life["reasons"], life
    assert life["exit_status"] == 0 and life["left_processes"] == 0, life
    assert life["peak_bytes"] >= life["close_bytes"] > 1e6, life
assert document["lives"][-1]["processes"] >= 2

life = lives("child", "--test=T6", "--observe=6s", status=1)["lives"][0]
assert life["left_processes"] == 1 and life["gone_seconds"] is None, life
assert "1 process left after 6.0 s" in life["reasons"], life
assert "leak_some" in life["details"] and "ended on SIGTERM" in life["details"], life["details"]
assert is_gone(pids(life["details"])[0])

life = lives("shared", "--test=T1", status=1)["lives"][0]
assert life["left_traces"] == 1 and "1 thing left behind in the system" in life["reasons"], life
path = life["details"].split("shared memory ")[1].split(",")[0]
assert pathlib.Path(path).exists() and path.startswith("/dev/shm/memstow-ends-")
pathlib.Path(path).unlink()

life = lives("crash", "--test=T1", status=1)["lives"][0]
assert life["reasons"] == ["crashed: SIGABRT"], life
document = lives("none", "--test=T2", status=4, steps="load: http POST /crash\nload: wait 5s\n")
assert document["failed"] == 1 and "load" in document["lives"][0]["reasons"][0], document
text = memstow("lifecycle", "--test=T1", "--repeat=1", "--untracked", "x.scenario").stdout
assert text.startswith("T1 start and close\n  1   passed  gone after "), text
assert "1 passed, 0 with a warning, 0 failed" in text, text

pathlib.Path("y.scenario").write_text("""program: ./faults here ignore planted
ready: file planted within 30s
close: signal TERM
""")
text = memstow("lifecycle", "--test=T1", "--repeat=1", "--untracked", "--observe=1s", "y.scenario", status=1).stdout
assert "FAILED" in text and "1 process left after 1.0 s" in text and "ended on SIGKILL" in text, text
pathlib.Path("z.scenario").write_text("program: sh -c 'read line; exit 5'\nset: A=b\nexit: 5\nclose: input quit\n")
assert "1 passed" in memstow("lifecycle", "--test=T1", "--repeat=1", "--untracked", "z.scenario").stdout

# A server leaves its connections open, empties its output file again and again, and never reads its input.
pathlib.Path("open.py").write_text("""
import os, socket, sys, threading, time
def cut():
    while True:
        os.write(1, b"x" * (8 << 20))
        os.ftruncate(1, 0)
threading.Thread(target=cut, daemon=True).start()
server, kept = socket.create_server(("127.0.0.1", int(sys.argv[1]))), []
while True:
    kept.append(server.accept()[0])
    kept[-1].recv(4096)
    kept[-1].sendall(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
""")
pathlib.Path("open.scenario").write_text(f"""program: {PYTHON} {{here}}/open.py {{port}}
ready: http GET / within 30s
load: says never within 3s
queue: input {"x" * 500000}
""")
text = memstow("lifecycle", "--test=T2,T3", "--repeat=1", "--untracked", "open.scenario", status=4).stdout
assert "line 3, load: says never: not within 3.0 s" in text, text
assert "the program does not read its input" in text and "2 failed" in text, text

# An interrupt ends the program, too, and leaves no ledgers.
pathlib.Path("w.scenario").write_text("program: sh -c 'echo $$ >pid.txt; exec sleep 600'\nready: says never\n")
process = start(MEMSTOW, "lifecycle", "--test=T1", "w.scenario", stdout=subprocess.DEVNULL)
pid = int(wait_for(lambda: pathlib.Path("pid.txt").exists() and pathlib.Path("pid.txt").read_text(), 30))
process.send_signal(signal.SIGINT)
assert process.wait(30) == 128 + signal.SIGINT and is_gone(pid)
