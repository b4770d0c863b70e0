"""The audit of a shutdown tells what the program still has. For the beginning of each stage, the log gives the memory
and the number of descriptors. For the end, it lists each open descriptor: its purpose, its age, and the functions that
opened it, if the ledger knows them. The log has this list even if the shutdown reaches its limit. Without memstow, the
Result of the shutdown has the memory and the open descriptors. The room that writes the audit (preload/shutdown) needs
nothing of the ledger."""
import json, os, pathlib, re

from support import BUILD, HERE, MEMSTOW, PYTHON, ROOT, compile, free_port, memstow, run

LIBRARY_SOURCES = sorted(path.stem for path in (ROOT / "preload/shutdown").glob("*.c"))
pathlib.Path("app.py").write_text(r"""
import os, socket, sys, time
import memstow_shutdown as shutdown

port = int(sys.argv[2])
large = []

def open_file():
    return open("kept.txt", "w")

def listen():
    return socket.create_server(("127.0.0.1", port))

class Pool:
    def connect(self):
        return socket.create_connection(("127.0.0.1", port))

kept = [open_file(), listen(), Pool().connect(), os.pipe(), os.memfd_create("shared")]
kept.append(kept[1].accept()[0])
gone = open("gone.txt", "w")
time.sleep(0.2)
shutdown.handler(gone.close, "gone", stage="stop")
shutdown.handler(lambda: large.append(b"x" * (64 << 20)), "takes", stage="drain")
shutdown.handler(large.clear, "gives back")
if sys.argv[1] == "limit":
    shutdown.handler(lambda: time.sleep(60), "stuck", after=["gives back"], seconds=60)
result = shutdown.run("the test", limit=2 if sys.argv[1] == "limit" else 30, status=78)
print(result.memory, result.handles, sep="\n")
""")
environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}


def life(word, *options, status=0):
    """Runs app.py, which inherits a descriptor of a folder. Returns the port, this descriptor, the steps in the log,
    and the lines of the output."""
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    before = options[0] if options and not options[0] else [MEMSTOW, "run", "--quiet", "-o", "x.mst", *options, "--"]
    inherited = os.open(HERE, os.O_RDONLY | os.O_DIRECTORY)
    port = free_port()
    done = run(*before, PYTHON, "app.py", word, port, env=environment, status=status, pass_fds=[inherited])
    os.close(inherited)
    log = pathlib.Path("shutdown.log")
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return port, inherited, lines, done.stdout.splitlines()


def descriptors(lines):
    return {line["descriptor"]: line for line in lines if line["step"] == "left descriptor"}


def check_descriptors(port, inherited, lines, known=True):
    found = descriptors(lines)
    by_what = {line["what"]: line for line in found.values()}
    file = next(line for what, line in by_what.items() if what.endswith("/kept.txt"))
    listens = by_what[f"tcp 127.0.0.1:{port}, listens"]
    connected = next(line for what, line in by_what.items() if what.endswith(f"to 127.0.0.1:{port}, connected"))
    accepted = next(line for what, line in by_what.items() if what.startswith(f"tcp 127.0.0.1:{port} to"))
    pipes = [line for line in found.values() if line["type"] == "pipe" and line.get("opened_by") != "inherited"]
    shared = next(line for line in found.values() if line["what"].startswith("/memfd:shared"))
    assert (file["type"], listens["type"], shared["type"]) == ("open file", "socket", "piece of shared memory"), found
    assert not any("gone.txt" in what for what in by_what), found
    assert found[inherited]["what"] == str(HERE), found
    if not known:
        assert not any("opened_by" in line or "age_ms" in line for line in found.values()), found
        return
    assert found[inherited]["opened_by"] == "inherited" and "age_ms" not in found[inherited], found[inherited]
    folder = HERE.name
    assert file["opened_by"].startswith(f"open_file {folder}/app.py:9, <module> {folder}/app.py:18"), file
    assert re.search(rf"create_server \S+/socket.py:\d+, listen {folder}/app.py:12, <module>",
                     listens["opened_by"]), listens
    assert f"Pool.connect {folder}/app.py:16" in connected["opened_by"], (connected, accepted)
    assert "accept" in accepted["opened_by"], (connected, accepted)
    assert len(pipes) == 2 and all(f"<module> {folder}/app.py:18" in line["opened_by"] for line in pipes), pipes
    assert all(200 <= line["age_ms"] < 60000 for line in (file, listens, connected, shared)), found


for options in ((), ("--stacks=none",)):
    port, inherited, lines, out = life("ends", *options)
    check_descriptors(port, inherited, lines, known=not options)
    stages = {line["name"]: line for line in lines if line["step"] == "stage"}
    assert list(stages) == ["stop accepting", "drain", "clean", "processes", "threads"], stages
    assert lines[0]["step"] == "begin" and lines[-1]["step"] == "end", lines
    for line in (lines[0], *stages.values(), lines[-1]):
        assert line["rss_bytes"] > 5 << 20 and line["live_bytes"] > 3 << 20 and line["shared_bytes"] > 1 << 20, line
    assert stages["clean"]["rss_bytes"] - stages["drain"]["rss_bytes"] > 60 << 20, stages
    assert stages["clean"]["live_bytes"] - stages["drain"]["live_bytes"] > 60 << 20, stages
    assert stages["clean"]["rss_bytes"] - stages["processes"]["rss_bytes"] > 60 << 20, stages
    assert stages["drain"]["descriptors"] == stages["stop accepting"]["descriptors"] - 1, stages # gone.txt
    assert lines[-1]["descriptors_left"] == len(descriptors(lines)), (lines[-1], descriptors(lines))
    memory = dict(eval(out[0]))
    assert list(memory) == ["stop", "drain", "clean", "processes", "threads", "end"], memory
    assert memory["clean"] - memory["drain"] > 60 << 20, memory

port, inherited, lines, out = life("limit", status=78)
check_descriptors(port, inherited, lines)
forced = next(line for line in lines if line["step"] == "forced")
assert forced["rss_bytes"] > 5 << 20, forced

port, inherited, lines, out = life("ends", []) # without memstow
assert not lines, lines
memory, handles = dict(eval(out[0])), dict(eval(out[1]))
assert memory["clean"] - memory["drain"] > 60 << 20 and memory["clean"] - memory["processes"] > 60 << 20, memory
assert handles[inherited] == str(HERE) and str(HERE / "kept.txt") in handles.values(), handles
assert sum(what.startswith("socket:")
           for what in handles.values()) == 3 and not any("gone.txt" in what for what in handles.values()), handles

# For a program in C, the log gives addresses in place of the names of functions. memstow's own descriptors are not
# listed as the program's.
program = compile(r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include "memstow.h"
#define CALL(name) ((__typeof__(&memstow_##name))dlsym(RTLD_DEFAULT, "memstow_" #name))
__attribute__((noinline)) int opens(void) { return open("/etc/passwd", O_RDONLY) + 0; }
int main(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "./named.socket"};
    if (CALL(owner_open)(MEMSTOW_MODEL, "model", "", 1, 0) <= 0) return 2;
    usleep(300000); /* the socket for requests is open by then */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1)) return 3;
    syscall(SYS_open, "/etc/group", O_RDONLY);
    return opens() != fd + 2 || CALL(shutdown)("the test", 0, 76);
}
""", "opener", ("-O1", "-g", "-I", ROOT / "include"))
pathlib.Path("shutdown.log").unlink(missing_ok=True)
memstow("run", "--quiet", "-o", "x.mst", "--", program)
lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
found = {line["what"]: line for line in descriptors(lines).values() if line["opened_by"] != "inherited"}
assert set(found) == {"unix ./named.socket", "/etc/group",
                      "/etc/passwd"} and found["/etc/group"]["opened_by"] == "unseen", found
place = re.match(r"opener\+(0x[0-9a-f]+), opener\+0x", found["/etc/passwd"]["opened_by"])[1]
assert run("addr2line", "-f", "-e", program, place).stdout.split()[0] == "opens", found["/etc/passwd"]

# The symbols of the object files show that preload/shutdown uses nothing of the ledger. (If preload/shutdown calls a
# function of libc that memstow hooks, nm finds this function in a file hook_*.)
objects = BUILD / "CMakeFiles/libmemstow.dir/preload"
symbols = {path.name[:-4]: run("nm", path).stdout for path in objects.rglob("*.o")}
defined = {name: path for path, text in symbols.items() for name in re.findall(r" [TDBR] (\w+)", text)}
used = {name: defined[name] for path in LIBRARY_SOURCES for name in re.findall(r" U (\w+)", symbols[path])
        if name in defined}
strange = {name: path for name,
           path in used.items() if not path.startswith(("shutdown", "stow_thread", "stow_work", "hook_"))
           and path not in ("bytes", "os", "lock", "line", "jsontext", "handle_kind", "socket_line")}
assert LIBRARY_SOURCES and used and not strange, strange
