"""Output beyond RLIMIT_FSIZE is a failure with a message, not a death by SIGXFSZ. No unfinished file stays. A program
that the command starts ignores SIGXFSZ only if the command was started with SIGXFSZ ignored."""
import json, os, resource, signal, subprocess
from _ledger import simple
from support import HERE, MEMSTOW, features, start


def limited(*words, status=3, bytes=1000, ignored=False, **more):
    """Runs memstow with a limit of `bytes` for the size of each file. Returns what it wrote to standard error."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN if ignored else signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, bytes))
    more.setdefault("stdout", subprocess.PIPE)
    done = subprocess.run([MEMSTOW, *words], stderr=subprocess.PIPE, text=True, preexec_fn=limit, **more)
    assert done.returncode == status, (words, done)
    return done.stderr


# --- what a started program gets
LOOK = "grep SigIgn /proc/self/status"
for words in (("run", "--quiet", "-o", "run.mst", "--"), ("run", "--exec", "-o", "run.mst", "--")):
    for ignored in (False, True):
        with open("signals", "w") as out:
            limited(*words, "sh", "-c", LOOK, status=0, bytes=resource.RLIM_INFINITY, ignored=ignored, stdout=out)
        mask = int((HERE / "signals").read_text().split()[1], 16)
        assert bool(mask >> signal.SIGXFSZ - 1 & 1) == ignored, (words, ignored, mask)

if features()["sanitize"] == "thread":
    print("the limit was not tried: a command with ThreadSanitizer dies of SIGXFSZ when it starts under it")
    raise SystemExit
simple().save("x.mst")

# --- files that the command makes
process = start(MEMSTOW, "run", "--quiet", "-o", "run.mst", "--", "sh", "-c", "echo ready; read line",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
listed = json.loads(subprocess.check_output([MEMSTOW, "ps", "--json"]))["processes"]
pid = str(next(one["pid"] for one in listed if one["file"] == os.path.abspath("run.mst")))
before = sorted(os.listdir())
for words, file in ((("report", "x.mst", "--html", "-o", "page.html"), "page.html"),
                    (("snapshot", pid, "-o", "y.mst"), "y.mst"),
                    (("metrics", pid, "--textfile=."), "./memstow.prom")):
    said = limited(*words)
    assert said == f"memstow: {file}: File too large\n", said
assert sorted(os.listdir()) == before, os.listdir()
process.stdin.close()
process.wait(20)

# --- standard output, and standard error
with open("out", "w") as out:
    said = limited("report", "x.mst", "--html", stdout=out)
assert said == "memstow: the output could not be written: File too large\n", said
with open("out", "w") as out: # the summary has no room there; the program's exit status counts
    done = subprocess.run([MEMSTOW, "run", "-o", "x.mst", "--", "sh", "-c", "exit 7"], stderr=out,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
assert done.returncode == 7, done
