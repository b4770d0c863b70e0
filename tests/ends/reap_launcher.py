"""A program started its servers through launcher scripts. The scripts ended, and then the program crashed. reap finds
the servers by the mark that they inherited, even a server in a session of its own, and ends them. reap leaves alone:
- processes that are to be kept;
- processes whose mark names another program or another number;
- processes in another PID namespace;
- a program that was started through such a launcher and keeps a list of its own."""
import json, os, pathlib, signal, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, expect_exit, is_gone, memstow, start, wait_for

pathlib.Path("parent.py").write_text(r"""
import json, os, pathlib, subprocess, sys, time
import memstow_shutdown as shutdown

quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
def launch(name, script, **how):
    # behind a shell that ends at once; what it leaves says its pid
    child = shutdown.start(["sh", "-c", script], name, **quiet, **how)
    while not pathlib.Path(name).exists():
        time.sleep(0.02)
    child.wait()

launch("server", "sh -c 'echo $$ > new1; mv new1 server; exec sleep 600' &")
launch("apart", "setsid sh -c 'echo $$ > new2; mv new2 apart; sleep 600; :' &")
launch("kept", "sh -c 'echo $$ > new3; mv new3 kept; exec sleep 600' &", keep=True)
launch("wiped", "env -u MEMSTOW_STARTED sh -c 'echo $$ > new4; mv new4 wiped; exec sleep 600' &")
if sys.argv[1:]:
    launch("again", f"{sys.executable} again.py &")
print("ready", flush=True)
time.sleep(600)
""")
pathlib.Path("again.py").write_text(r"""
import os, pathlib, subprocess, time
import memstow_shutdown as shutdown
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
shutdown.process(subprocess.Popen(["sleep", "600"], **quiet), "its own")
other = subprocess.Popen(["sleep", "600"], **quiet)
pathlib.Path("new5").write_text(f"{os.getpid()}")
pathlib.Path("below").write_text(f"{other.pid}")
os.rename("new5", "again")
time.sleep(600)
""")
NAMES = ("server", "apart", "kept", "wiped")
LIST = pathlib.Path("process_registry.json")
environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}


def crash(*words):
    """Runs one life of the program up to its crash. Returns the processes that the life left."""
    for name in (*NAMES, "again", "below"):
        pathlib.Path(name).unlink(missing_ok=True)
    life = start(MEMSTOW, "run", "--quiet", "-o", "%p.mst", "--", PYTHON, HERE / "parent.py", *words,
                 stdout=subprocess.PIPE, text=True, env=environment)
    assert life.stdout.readline() == "ready\n"
    parent = json.loads(LIST.read_text())["parent"]["pid"]
    os.kill(parent, signal.SIGKILL)
    expect_exit(life, 128 + signal.SIGKILL, seconds=30)
    return {name: int(pathlib.Path(name).read_text()) for name in (*NAMES, *(("again", "below") if words else ()))}


left = crash()
document = json.loads(LIST.read_text())
first = document["processes"][0]
assert len({one["number"] for one in document["processes"]} - {0}) == 4
assert all(is_gone(one["pid"]) for one in document["processes"])
mark = "{pid}.{start_ticks}.".format(**document["parent"])


def marked(text, *command):
    """Starts a process whose mark is `text`. None of the processes on the list has started this process."""
    return start(*(command or ("sleep", "600")), env={**os.environ, "MEMSTOW_STARTED": text}, stdout=subprocess.DEVNULL)


# The marks of these strangers have another number, another program, no number, or a bad number. The last one has no
# mark.
strangers = [marked(f"{mark}{first['number']}0"), marked(f"{mark}0"), marked(f"1{mark}{first['number']}"), marked(mark),
             marked(f"{mark}{first['number']}x"), start("sleep", "600")]
hidden = None
if subprocess.run(["unshare", "-p", "-f", "true"], stderr=subprocess.DEVNULL).returncode == 0: # it is permitted
    hidden = marked(f"{mark}{first['number']}", "unshare", "-p", "-f", "sleep", "600")
    inside = wait_for(
        lambda:
        [int(pid) for pid in pathlib.Path(f"/proc/{hidden.pid}/task/{hidden.pid}/children").read_text().split()])[0]
    strangers += [inside]
    wait_for(lambda: os.readlink(f"/proc/{inside}/exe").endswith("sleep"))
done = memstow("reap", status=1).stdout
assert all(f"pid {left[name]}, " in done for name in ("server", "apart")) and f"pid {left['kept']}, " not in done, done
if hidden: # unshare itself is in the test's namespace, so reap lists it, and would end it
    assert f"pid {hidden.pid}, " in done, done
    os.kill(hidden.pid, signal.SIGKILL), hidden.wait()
done = memstow("reap", "--end").stdout
assert all(f"pid {left[name]}, " in done for name in ("server", "apart")), done
assert done.count("ended on SIGTERM") >= 3, done # also the sleep behind "apart"
wait_for(lambda: is_gone(left["server"]) and is_gone(left["apart"]), 10)
assert not is_gone(left["kept"]) and not is_gone(left["wiped"])
for one in strangers:
    assert not is_gone(getattr(one, "pid", one)), one
    os.kill(getattr(one, "pid", one), signal.SIGKILL)
assert "none of its processes is left" in memstow("reap", "--end").stdout
for name in ("kept", "wiped"):
    os.kill(left[name], signal.SIGKILL)

# A launcher has started the program anew. The new program has a list of its own, so neither the new program nor its
# descendants are touched.
left = crash("again")
done = memstow("reap", "--end").stdout
assert "still runs: left alone" in done and f"pid {left['server']}, " in done, done
wait_for(lambda: is_gone(left["server"]) and is_gone(left["apart"]), 10)
assert not is_gone(left["again"]) and not is_gone(left["below"])
os.kill(left["again"], signal.SIGKILL) # once it is gone, only their mark connects its descendants with it
wait_for(lambda: is_gone(left["again"]), 10)
for name in ("kept", "wiped"):
    os.kill(left[name], signal.SIGKILL)
own = [one["pid"] for path in pathlib.Path().glob("process_registry*")
       for one in json.loads(path.read_text())["processes"] if one["name"] == "its own"]
memstow("reap", "--end")
wait_for(lambda: all(map(is_gone, own)) and own, 10)
for path in pathlib.Path().glob("process_registry*"):
    path.unlink()
if not is_gone(left["below"]):
    os.kill(left["below"], signal.SIGKILL)
