"""If a scenario has steps `behind`, lifecycle's test T3 makes these steps, and closes the program while one workflow
runs and a second workflow waits behind it. None of the other tests (T1 to T6) makes these steps. If no workflow runs, a
message says at once that the second workflow has nothing to wait behind. If the second workflow does not begin to wait,
a message says so when the time is over. (A server takes ComfyUI's place.)"""
import json, pathlib

from support import PYTHON, memstow

pathlib.Path("server.py").write_text("""
import http.server, json, signal, sys, threading
port = int(sys.argv[1])
running, pending = map(int, sys.argv[2:4]) # at most so many prompts run, and wait
prompts = []

class Handler(http.server.BaseHTTPRequestHandler):
    def say(self, document):
        self.send_response(200), self.end_headers(), self.wfile.write(json.dumps(document).encode())
    def do_GET(self):
        there = [[number, f"p{number}"] for number in range(len(prompts))]
        queue = {"queue_running": there[:running], "queue_pending": there[running:running + pending]}
        self.say(queue if self.path == "/queue" else {"p0": {"status": {"status_str": "success"}}})
    def do_POST(self):
        prompts.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.say({"prompt_id": f"p{len(prompts) - 1}"})
    def log_message(self, *words): pass

def close(*_):
    open("prompts.txt", "a").write(f"{len(prompts)}\\n")
    threading.Thread(target=server.shutdown).start()
signal.signal(signal.SIGTERM, close)
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
server.serve_forever()
""")
pathlib.Path("workflow.json").write_text("{}")


BEHIND = "behind: prompt workflow.json\nbehind: waiting within 2s\n"


def lives(tests, running, pending, status=0, steps="queue: running\n" + BEHIND):
    """Runs the tests. Returns the lives, and the number of prompts that each life got."""
    pathlib.Path("prompts.txt").unlink(missing_ok=True)
    pathlib.Path("x.scenario").write_text(f"""program: {PYTHON} {{here}}/server.py {{port}} {running} {pending}
ready: http GET / within 60s
queue: prompt workflow.json
{steps}finish: finished
cancel: wait 10ms
""")
    done = memstow("lifecycle", "--json", "--untracked", f"--test={tests}", "--repeat=1", "x.scenario", status=status)
    sent = pathlib.Path("prompts.txt").read_text().split() if pathlib.Path("prompts.txt").exists() else []
    return json.loads(done.stdout)["lives"], sent


found, sent = lives("T3,T4,T5", 1, 1)
assert [life["verdict"] for life in found] == ["passed"] * 3 and sent == ["2", "1", "1"], (found, sent)
found, sent = lives("T3", 1, 1, steps="queue: running\n") # without the key `behind`
assert [life["verdict"] for life in found] == ["passed"] and sent == ["1"], (found, sent)
(life,), sent = lives("T3", 2, 0, status=4)
assert life["reasons"] == ["line 6, behind: waiting: not within 2.0 s"], life
(life,), sent = lives("T3", 0, 0, status=4, steps=BEHIND.replace("2s", "10m"))
assert life["reasons"] == ["line 5, behind: waiting: nothing runs that a workflow could wait behind"], life
