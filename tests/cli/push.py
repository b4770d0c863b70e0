# needs: deb:protobuf-compiler deb:openssl deb:libcurl4 pip:protobuf==7.36.2
# timeout: 600
"""`memstow push` sends what the report has, by the published protocols of Pyroscope and Parca, to a recorder (a test
double; the servers themselves are in no package registry that the tests use). While the server is down, no profile is
taken. The next profile covers this whole time, so the profiles together have all allocated bytes. A server that
refuses, hangs or is not there costs one message and status 3. With --every, a server that goes down later is asked
again. Without protoc nothing is tried. If the machine lacks what a single part needs, the other parts run, and the test
counts as skipped."""
import os, pathlib, shutil, signal, socket, ssl, subprocess, threading

from _push import Recorder, basic
from support import MEMSTOW, PYTHON, ROOT, features, free_port, memstow, report, run, skip, start, wait_for

if not shutil.which("protoc"):
    skip("needs protoc to read a profile with")
MANY = 3
not_tried = [] # parts that this machine cannot try
pathlib.Path("program.py").write_text("""
import sys, memstow
model, other = (memstow.owner("unet", origin=file) for file in ("wan.safetensors", "flux.safetensors"))
with memstow.run("run 7"):
    with model.scope():
        kept = [bytearray(1 << 20) for _ in range(8)]
    with other.scope():
        kept += [bytearray(1 << 20) for _ in range(3)]
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        bytearray(1 << 20)
    print("done", flush=True)
""")
program = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--exec", "--", PYTHON, "program.py", stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
assert program.stdout.readline() == "ready\n"
pid = program.pid


def allocate(megabytes):
    program.stdin.write(f"{megabytes}\n")
    program.stdin.flush()
    assert program.stdout.readline() == "done\n"


def allocated():
    return report(pid)["totals"]["allocated_bytes"]


def push(*words, status=0):
    """Pushes one profile. Returns the complaint."""
    done = memstow("push", *words, status=status)
    assert not done.stdout, done.stdout
    return done.stderr


# --- one profile has what the report has
recorder = Recorder()
for server in ("pyroscope", "parca"):
    recorder.profiles.clear()
    assert not push(f"--to={server}", recorder.url, pid, "--service=worker", "--label=zone=a b", "--label=pod=mine")
    profile, = recorder.profiles
    expected = {"__name__": "memory", "service_name": "worker", "pod": "mine", "zone": "a b", "pid": str(pid),
                "process": profile.labels["process"], **({"__delta__": "false"} if server == "pyroscope" else {})}
    assert profile.labels == expected and profile.labels["process"].startswith("python"), profile.labels
    totals = report(pid)["totals"]
    assert profile.sum("inuse_space") == totals["live_bytes"], (profile.sum("inuse_space"), totals)
    assert profile.sum("inuse_objects") == totals["live_blocks"], totals
    for file, held in (("wan", 8), ("flux", 3)): # models of one name are told apart by their files
        of_file = profile.sum("inuse_space", model=f"unet ({file}.safetensors)", run="run 7")
        assert held << 20 <= of_file < (held + 2) << 20, (file, of_file)
    assert profile.sum("alloc_space") == profile.sum("alloc_objects") == 0 # there is no earlier profile
assert any("program.py" in text for text in profile.raw["string_table"])

# --- --all, in a namespace of processes, so that other tests' processes are not seen
recorder.profiles.clear()
pathlib.Path("many.py").write_text(f"""
import subprocess
each = [subprocess.Popen([{MEMSTOW!r}, "run", "--quiet", "--exec", "-o", f"each{{i}}.mst", "--", {PYTHON!r}, "-c",
                          "print(flush=True); input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for i in range({MANY})]
for one in each:
    one.stdout.readline()
done = subprocess.run([{MEMSTOW!r}, "push", "--to=pyroscope", "{recorder.url}/below/", "--all"], capture_output=True)
print(done.returncode, done.stderr.decode(), *sorted(one.pid for one in each))
""")
APART = "unshare", "--pid", "--fork", "--mount-proc"
tried = run(*APART, "true", status=None)
if tried.returncode:
    not_tried.append(f"--all: no namespace of processes can be made here: {tried.stderr.strip()[-200:]}")
else:
    apart = run(*APART, PYTHON, "many.py", timeout=200)
    status, *pids = apart.stdout.split()
    assert status == "0" and len(pids) == MANY, apart.stdout
    assert [profile.labels["pid"] for profile in recorder.profiles] == pids, (pids, apart.stdout)
    assert {profile.path for profile in recorder.profiles} == {"/below/push.v1.PusherService/Push"}

# --- --every: the profiles together have all allocated bytes, even if the server was down for a time
recorder.profiles.clear()
before = allocated()
with open("repeated.txt", "w") as said:
    pusher = start(MEMSTOW, "push", "--to=pyroscope", recorder.url, pid, "--every=200ms", stderr=said)
wait_for(lambda: recorder.profiles, what="the first profile")
arrived = lambda: sum(profile.sum("alloc_space") for profile in list(recorder.profiles))
allocate(20)
wait_for(lambda: arrived() == allocated() - before, what="20 MiB more")
recorder.answer = 503, "busy"
wait_for(lambda: "status 503: busy" in pathlib.Path("repeated.txt").read_text(), what="the complaint")
asked = len(recorder.asked)
allocate(30)
wait_for(lambda: len(recorder.asked) >= asked + 2, what="two more tries") # after pauses of one and of two seconds
recorder.answer = 200, "{}"
wait_for(lambda: arrived() == allocated() - before, what="what was allocated while the server was down")
assert arrived() >= 50 << 20
# While the server was down, no profile was taken: each try sent the same profile again. The next profile covers the
# whole time.
assert len({body for _path, _headers, body in recorder.asked[asked - 1:asked + 2]}) == 1
durations = [profile.message.duration_nanos for profile in recorder.profiles[1:]]
assert max(durations) >= 3_000_000_000, durations
said = pathlib.Path("repeated.txt").read_text().splitlines()
assert len(said) == 2 and "is asked again later" in said[0] and "answers again" in said[1], said
pusher.send_signal(signal.SIGTERM)
assert pusher.wait(30) == 0

# --- refused, hanging, not there
recorder.answer = 401, "no such token\nmore"
pathlib.Path("token").write_text("s3cret\n")
said = push("--to=pyroscope", recorder.url, pid, "--bearer=token", status=3)
assert f"{recorder.url}: status 401: no such token\n" in said and "in the clear" not in said, said
assert "go over http" in said and "s3cret" not in said and len(said.splitlines()) == 2, said
assert recorder.asked[-1][1]["Authorization"] == "Bearer s3cret"
said = push("--to=parca", recorder.url, pid, "--every=100ms", status=3) # asking again would not help
assert said == f"memstow: {recorder.url}: status 401: no such token\n", said
recorder.answer = 500, ""
assert push("--to=parca", recorder.url, pid, status=3) == f"memstow: {recorder.url}: status 500\n"
recorder.answer = None
assert "no whole answer in time" in push("--to=parca", recorder.url, pid, status=3)
recorder.over.set()
try:
    there = Recorder(address="::1")
except OSError:
    not_tried.append("an address of IPv6: there is none here")
else:
    assert not push("--to=parca", there.url, pid) and there.profiles[0].headers["Host"] == there.url.split("//")[1]
with socket.create_server(("127.0.0.1", 0)) as other: # a server of another protocol
    def speak(words):
        connection, rest = other.accept()[0], 0
        with connection, connection.makefile("rb") as request:
            while (line := request.readline()) != b"\r\n": # the whole request, or the kernel resets the connection
                name, _, value = line.partition(b": ")
                rest = int(value) if name == b"Content-Length" else rest
            request.read(rest)
            connection.sendall(words)

    for words, why in ((b"", "the connection ended without an answer"), (b"SSH-2.0-x\r\n", "the answer is not HTTP")):
        thread = threading.Thread(target=speak, args=(words,), daemon=True)
        thread.start()
        there = f"http://127.0.0.1:{other.getsockname()[1]}"
        assert push("--to=parca", there, pid, status=3) == f"memstow: {there}: {why}\n"
        thread.join(60)
closed = f"http://127.0.0.1:{free_port()}"
assert push("--to=parca", closed, pid, status=3) == f"memstow: {closed}: Connection refused\n"
if features()["sanitize"] == "thread":
    not_tried.append("a host's name: ThreadSanitizer does not know the thread of getaddrinfo_a")
else:
    assert "memstow: http://no.such.host.invalid:80: " in push("--to=parca", "http://no.such.host.invalid", pid,
                                                               status=3)
assert push("--to=parca", closed, 2**22, "--every=1s", status=3)

# --- wrong words
for words in (("--to=parca", pid), ("--to=x", "http://a", pid), ("http://a", pid), ("--to=parca", "ftp://a", pid),
              ("--to=parca", "http://u:p@a", pid), ("--to=parca", "http://a:0", pid), ("--to=parca", "http://a:b", pid),
              ("--to=parca", "http://a", pid, "--all"), ("--to=parca", "http://a", "x"),
              ("--to=parca", "http://a", pid, "--every=0"), ("--to=parca", "http://a", pid, "--label=1x=2"),
              ("--to=parca", "http://a", pid, "--bearer=token", "--basic=token")):
    push(*words, status=2)
pathlib.Path("two").write_text("one\ntwo\n")
for path in ("two", "no such file", "/dev/null"):
    assert path in push("--to=parca", closed, pid, f"--basic={path}", status=3)

# --- TLS
run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
    "-subj", "/CN=recorder", "-addext", "subjectAltName=IP:127.0.0.1")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
secure = Recorder(context)
said = push("--to=pyroscope", secure.url, pid, status=3)
if "needs libcurl" in said:
    not_tried.append("https: libcurl is not installed")
else:
    assert "certificate" in said and not secure.asked, said # nobody vouches for it
    pathlib.Path("user").write_text("me:s3cret")
    assert not push("--to=pyroscope", secure.url, pid, "--basic=user", "--cacert=cert.pem")
    assert secure.profiles[0].headers["Authorization"] == basic("me:s3cret")
    secure.answer = 403, "no"
    assert push("--to=pyroscope", secure.url, pid, "--cacert=cert.pem", status=3) == \
        f"memstow: {secure.url}: status 403\n"

# --- if the process becomes a program that is not tracked, memstow push ends after five failures in a row
recorder.answer = 200, "{}"
leaving = start(MEMSTOW, "run", "--quiet", "-o", "y.mst", "--exec", "--", PYTHON, "-c",
                "import os; input(); os.execve('/bin/sleep', ['sleep', '600'], {})", stdin=subprocess.PIPE, text=True,
                env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
wait_for(lambda: memstow("report", leaving.pid, status=None).returncode == 0, what="its ledger")
recorder.profiles.clear()
with open("left.txt", "w") as said:
    pusher = start(MEMSTOW, "push", "--to=parca", recorder.url, leaving.pid, "--every=100ms", stderr=said)
wait_for(lambda: recorder.profiles, what="a profile")
print(file=leaving.stdin, flush=True)
assert pusher.wait(60) == 3
complaints = pathlib.Path("left.txt").read_text().splitlines()
assert len(complaints) == 5 and all("is not tracked" in line for line in complaints), complaints

# --- the process ends, and so does the command
with open("ended.txt", "w") as said:
    recorder.answer = 200, "{}"
    pusher = start(MEMSTOW, "push", "--to=parca", recorder.url, pid, "--every=200ms", stderr=said)
recorder.profiles.clear()
wait_for(lambda: recorder.profiles, what="a profile")
program.stdin.close()
assert program.wait(60) == 0 and pusher.wait(60) == 0, pathlib.Path("ended.txt").read_text()
if not_tried:
    skip(f"not tried: {'; '.join(not_tried)}")
