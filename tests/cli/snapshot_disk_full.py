"""A snapshot on a full disk leaves no partial file behind."""
import json, os, resource, subprocess
from support import MEMSTOW, memstow, start

process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", "sh", "-c", "echo ready; read line",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
pid = next(p["pid"] for p in json.loads(memstow("ps", "--json").stdout)["processes"]
           if p["file"] == os.path.abspath("x.mst"))


def limit():
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


done = memstow("snapshot", pid, "-o", "y.mst", status=3, preexec_fn=limit)
assert done.stderr == "memstow: y.mst: File too large\n", done.stderr
assert os.listdir() == ["x.mst"], os.listdir()
process.stdin.close()
process.wait(20)
