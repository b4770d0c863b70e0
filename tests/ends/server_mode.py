"""Under --server-mode, these processes live on: processes whose names the user gives, their descendants (even those
behind a launcher script), and processes that the program registered to be kept. All of these are neither ended nor
counted as left, and one line names them. Other processes are ended as always."""
import atexit, concurrent.futures, json, os, pathlib, re, signal

from _ends import pids, watch
from support import HERE, PYTHON, ROOT, is_gone, memstow

pathlib.Path("server.py").write_text("""
import os, subprocess, time
subprocess.run(["sh", "-c", "sleep 300 >/dev/null 2>&1 &"])
open(f"serves.{os.getppid()}", "w").close()
time.sleep(300)
""")
pathlib.Path("app.py").write_text(f"""
import os, shutil, subprocess, sys, time
sys.path.insert(0, {str(ROOT / "tools/python")!r})
import memstow_shutdown as shutdown
def begin(*command, **how):
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            **how)
if "server" in sys.argv:
    begin(sys.executable, "-u", {str(HERE / "server.py")!r}, start_new_session=True)
if "kept" in sys.argv:
    shutdown.process(begin("sleep", "301", cwd="/"), "kept one", keep=True)
if "listed" in sys.argv:
    shutdown.process(begin("sleep", "301"), "listed one")
for number in "12" if "alike" in sys.argv else "": # of their names the kernel keeps what both have
    os.symlink(shutil.which("sleep"), f"memstow-worker-{{number}}")
    begin(f"./memstow-worker-{{number}}", "303")
if "other" in sys.argv:
    begin("sleep", "302")
while "server" in sys.argv and not os.path.exists(f"serves.{{os.getpid()}}"):
    time.sleep(0.05)
if "elsewhere" in sys.argv:
    os.chdir("/")
print("ready", flush=True)
time.sleep(2.5)
""")


def kill(pid):
    if not is_gone(pid):
        os.kill(pid, signal.SIGKILL)


def spared(text):
    """The pids in the line that names the exempt processes. All of them must be alive."""
    found = re.findall(r"^ *(?:memstow: )?left alive, as asked: (.*)$", text, re.M)
    left = pids(found[0]) if found else []
    for pid in left:
        atexit.register(kill, pid)
    assert len(found) == bool(left) and not any(map(is_gone, left)), text
    return left


def write_list(folder):
    """Writes a process list that names this test as the program that wrote it. The test still runs, so nobody may
    replace the list."""
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    start = int(pathlib.Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    pathlib.Path(folder, "process_registry.json").write_text(
        json.dumps({
            "format": "memstow-processes", "version": 1, "boot_id": boot,
            "parent": {"pid": os.getpid(), "start_ticks": start}, "processes": []
        }))


def watched(name, words, mode="--server-mode=server.py,listed one", status=0, beside=False):
    """Runs app.py under watch, in a folder of its own. With `beside`, the folder also has the list of another running
    program, so the program's list gets a number in its name."""
    os.mkdir(name)
    if beside:
        write_list(name)
    return watch(PYTHON, HERE / "app.py", *words, grace="1s", options=("--end", "--strict", mode), status=status,
                 cwd=name)[0]


def lived(*options, observe="30s", status=0):
    return memstow("lifecycle", "--test=T6", "--repeat=1", f"--observe={observe}", *options, "app.scenario",
                   status=status).stdout


pathlib.Path("app.scenario").write_text(f"""program: {PYTHON} {{here}}/app.py server
ready: says ready
child: wait 1ms
close: wait 1ms
""")
with concurrent.futures.ThreadPoolExecutor() as pool:
    all_named = pool.submit(watched, "named", ("server", "kept", "listed"))
    one_other = pool.submit(watched, "other", ("server", "kept", "other"), status=1)
    no_names = pool.submit(watched, "none", ("server", "kept", "listed"), mode="--server-mode", status=1)
    elsewhere = pool.submit(watched, "elsewhere", ("kept", "elsewhere"))
    beside = pool.submit(watched, "beside", ("kept",), beside=True)
    alike = pool.submit(watched, "alike", ("alike",), mode="--server-mode=memstow-worker-1", status=1)
    as_ever = pool.submit(watched, "ever", ("kept",), mode="--strict", status=1)
    life = pool.submit(lived, "--server-mode=server.py")
    document = pool.submit(lived, "--server-mode=server.py", "--json", "--untracked")
    failed = pool.submit(lived, "--json", observe="6s", status=1)

text = all_named.result()
assert len(spared(text)) == 4 and text.count("\n") == 1, text # server.py, its sleep, and the two registered processes
text = one_other.result()
kept, (ended,) = spared(text), map(int, re.findall(r"sleep, pid (\d+): ended on SIGTERM", text))
assert len(kept) == 3 and ended not in kept and is_gone(ended), text
assert re.search(r"ended, 1 process is still there\n  sleep, pid ", text), text
text = no_names.result()
assert len(spared(text)) == 1 and len(set(pids(text))) == 4 and text.count(": ended on SIGTERM\n") == 3, text
assert len(spared(elsewhere.result())) == 1 # the list is in the folder where the program was started
assert len(spared(beside.result())) == 1 and len(list(pathlib.Path("beside").glob("process_registry.*"))) == 2
text = alike.result()
assert len(spared(text)) == 1 and text.count(": ended on SIGTERM\n") == 1, text
assert spared(as_ever.result()) == []
text = life.result()
assert len(spared(text)) == 2 and "1 passed" in text, text
life, = json.loads(document.result())["lives"]
assert life["kept_processes"] == 2 and life["left_processes"] == 0 and life["gone_seconds"] < 30, life
for folder in pathlib.Path("/proc").glob("[0-9]*"): # the JSON does not have the pids of the kept processes
    try:
        if os.readlink(folder / "cwd") == str(HERE) and int(folder.name) != os.getpid():
            atexit.register(kill, int(folder.name))
    except OSError:
        pass
life, = json.loads(failed.result())["lives"]
assert life["kept_processes"] == 0 and life["left_processes"] >= 2 and "ended on SIGTERM" in life["details"], life
