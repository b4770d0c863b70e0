"""Tests memstow check --comfy with a stand-in for ComfyUI's server, a test double: the requests that the check sends,
its findings, and its messages if the server or the workflow fails. tests/comfyui/check.py uses a real ComfyUI."""
import json, os, pathlib, re, signal, subprocess, sys, time
import support

os.environ["http_proxy"] = "http://127.0.0.1:9" # dead: servers on this machine are asked without a proxy

said = support.run(sys.executable, support.ROOT / "tools/python/memstow_comfy.py", "--help").stdout
assert "that speaks to ComfyUI." in " ".join(said.split()), "its first paragraph, not its first line"

pathlib.Path("double.py").write_text('''
"""Answers as much of ComfyUI's API as the check asks for. Its workflow keeps `kilobytes` of each run."""
import http.server, json, sys
port, kept, history, prompts = int(sys.argv[sys.argv.index("--port") + 1]), [], {}, open("prompts", "a")

class Double(http.server.BaseHTTPRequestHandler):
    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments): pass
    def do_GET(self):
        if self.path.startswith("/history/"):
            return self.answer(200, {k: v for k, v in history.items() if self.path.endswith(k)})
        self.answer(200 if self.path == "/system_stats" else 404, {"system": {}})
    def do_POST(self):
        nodes = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
        node = nodes["1"]["inputs"]
        print(json.dumps(nodes), file=prompts, flush=True)
        if node.get("refuse"): return self.answer(400, {"error": "no such model"})
        if node.get("die"): sys.modules["os"]._exit(9)
        if node.get("half"):
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b'{"prompt_id":')
            sys.modules["os"]._exit(9)
        kept.append(bytearray(node.get("kilobytes", 0) * 1024))
        number = f"id-{len(history)}"
        status = "error" if node.get("fail") else "success"
        history[number] = {"status": {"status_str": status, "messages": [["execution_error", {"node": "1"}]]}}
        self.answer(200, {"prompt_id": number})

def slowly(*_):
    print(os.getpid(), file=open("asked", "a"), flush=True)
    threading.Timer(3, os._exit, (0,)).start()

import os, signal, threading
if "--slow" in sys.argv: signal.signal(signal.SIGTERM, slowly)
print("the server says")
http.server.HTTPServer(("127.0.0.1", port), Double).serve_forever()
''')


def workflow(name, **inputs):
    pathlib.Path(name).write_text(
        json.dumps({"1": {"class_type": "X", "inputs": {"seed": 5, "noise_seed": ["2", 0], **inputs}}}))
    return name


def check(*options, status=0, command=(sys.executable, "-I", "double.py")):
    pathlib.Path("prompts").write_text("")
    done = support.memstow("check", *options, "--", *command, status=status)
    assert "the server says" not in done.stdout
    return done


# Each run has another seed, and inputs that are links stay links. The first third of the runs is the baseline of the
# last third.
done = check(f"--comfy={workflow('clean.json')}", "--runs=6", "--warm-up=2", "--json")
seen = [json.loads(line)["1"]["inputs"] for line in pathlib.Path("prompts").read_text().splitlines()]
assert [n["seed"] for n in seen] == list(range(1, 9)) and all(n["noise_seed"] == ["2", 0] for n in seen), seen
document = json.loads(done.stdout)
assert (document["result"], document["runs"], document["baseline_runs"],
        document["warm_up"]) == ("pass", 6, 2, 2), document
assert "the node pack is not in this ComfyUI" in done.stderr

# A workflow that keeps 1 MiB of each run grows by 3 MiB from the second run to the fifth. A workflow that keeps 512 KiB
# of each run gets a warning.
done = check(f"--comfy={workflow('leaky.json', kilobytes=1024)}", "--runs=6", "--warm-up=1", "--fail-over=2M", status=1)
assert re.search(
    r"(?s)memstow: all memory grew by 3\.0 MiB and \d+ blocks?: over the limit of 2M; most\s+of it \(\+3\.0 MiB\) at "
    r".*Double.do_POST@double.py",
    done.stderr), done.stderr
done = check(f"--comfy={workflow('some.json', kilobytes=512)}", "--runs=6", "--warm-up=1", "--fail-over=3M",
             "--pass-under=1M")
assert "warning: all memory grew by 1.5 MiB" in done.stderr, done.stderr

# A baseline that was made with one server process can be used with another. --keep keeps the snapshots. The command may
# name the port.
check("--comfy=clean.json", "--runs=2", "--warm-up=1", "--baseline=base.txt", "--update-baseline")
check("--comfy=clean.json", "--runs=2", "--warm-up=1", "--baseline=base.txt", "--keep=kept")
assert {p.name for p in pathlib.Path("kept").iterdir()} == {"comfyui.mst", "run-0001.mst", "run-0002.mst"}
port = str(support.free_port())
check("--comfy=leaky.json", "--runs=8", "--warm-up=1", "--baseline=base.txt", status=1,
      command=(sys.executable, "-I", "double.py", "--port", port))

# These failures are no leaks: the exit status is 4, or 2 for wrong usage.
for inputs, message in ((dict(refuse=1), 'ComfyUI refused the workflow: {"error": "no such model"}'),
                        (dict(fail=1), "the workflow failed: "), (dict(die=1), "ComfyUI did not take the workflow"),
                        (dict(half=1), "ComfyUI did not take the workflow")):
    done = check(f"--comfy={workflow('bad.json', **inputs)}", "--runs=2", status=4)
    assert message in done.stderr and "Traceback" not in done.stderr, (inputs, done.stderr)
done = check("--comfy=clean.json", command=("sh", "-c", "exit 7"), status=4)
assert "ComfyUI ended with 7 before its server answered" in done.stderr, done.stderr
pathlib.Path("ui.json").write_text('{"nodes": [], "links": []}')
pathlib.Path("broken.json").write_text('{"1":')
pathlib.Path("deep.json").write_text('{"1":' * 100_000)
pathlib.Path("list.json").write_text('{"1": {"class_type": "X", "inputs": ["seed"]}}')
for name, message in (("ui.json", "ui.json: not a workflow in ComfyUI's API format"), ("broken.json", "broken.json: "),
                      ("none.json", "none.json"), ("deep.json", "memstow: deep.json: nested too deep\n"),
                      ("list.json", "list.json: not a workflow in ComfyUI's API format")):
    assert message in check(f"--comfy={name}", status=2).stderr
os.mkfifo("fifo.json")
pathlib.Path("digits.json").write_text('{"1": {"class_type": "X", "inputs": {"seed": ' + "9" * 6000 + "}}}")
for name, message in (("/dev/zero", "not a regular file"), ("fifo.json", "not a regular file"),
                      ("digits.json", "a number with too many digits")):
    assert check(f"--comfy={name}", status=2).stderr == f"memstow: {name}: {message}\n", name
assert "--peak and --comfy exclude each other" in check("--comfy=clean.json", "--peak", status=2).stderr

pathlib.Path("prompts").write_text("")
# The check is interrupted many times in a row, while the server (--slow) takes 3 s to end. The check waits for the
# server.
process = support.start(support.MEMSTOW, "check", f"--comfy={workflow('clean.json')}", "--runs=1000", "--",
                        sys.executable, "-I", "double.py", "--slow", start_new_session=True, stderr=subprocess.PIPE,
                        text=True)
support.wait_for(lambda: pathlib.Path("prompts").read_text().count("\n") > 1, what="a run")
helper = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
for _ in range(100): # a process that ends a group may get signals that were meant for the group
    os.kill(helper, signal.SIGTERM)
    time.sleep(0.0005)
support.wait_for(pathlib.Path("asked").exists, what="the server to be asked to end")
time.sleep(0.3)
os.killpg(process.pid, signal.SIGINT)
errors = process.communicate(timeout=60)[1]
assert process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT), (process.returncode, errors)


def is_here(pid):
    try:
        return os.readlink(f"/proc/{pid}/cwd") == str(support.HERE)
    except OSError: # the process is gone, or of another user
        return False


left = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_here(pid)]
assert left == [os.getpid()], left
