# needs: root
"""Only the user of a process may send requests to it. The file system keeps other users from the socket, but not root.
If another user connects all the same, the process closes the connection without an answer.

- A process that changes its root still answers.
- If a process changes its user, all its threads change their user, memstow's threads, too.
- If no control thread can be made, the program goes on without it.
- The folder of the sockets is not used if it is open to others."""
import re, support
from _control import *

command = support.command_for_others()
listen = support.compile(pathlib.Path(__file__).with_name("control_leaves.c"), flags=("-O1", "-g", "-pthread", "-w"))
os.chmod(listen, 0o755)
home = pathlib.Path("nobody").resolve()
home.mkdir()
os.chown(home, 65534, 65534)
os.chmod(home, 0o700)


def by_nobody(mode="listen"):
    """Starts control_leaves as the user nobody. Returns the pid of this program."""
    process = start(command, "run", "--quiet", "-o", home / "%p.mst", "--", listen, mode, stdin=subprocess.PIPE,
                    preexec_fn=support.as_nobody, env={**os.environ, "XDG_RUNTIME_DIR": str(home)}, cwd=home)
    children = f"/proc/{process.pid}/task/{process.pid}/children"
    pid = int(wait_for(lambda: open(children).read().split() or None, what="a start")[0])
    wait_for(lambda: os.readlink(f"/proc/{pid}/exe").endswith("control_leaves"), what="a start")
    return pid


def as_other(function):
    """The value of function(), which a child calls as the user nobody."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        support.as_nobody()
        os.write(writer, repr(function()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return eval(os.read(reader, 1000))


def refused(path):
    """Returns "permission" if no connection can be made. Otherwise returns whether a connection is closed without an
    answer."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(20)
    try:
        connection.connect(str(path))
        connection.send(pack(TRIGGER))
        return receive(connection) is None
    except PermissionError:
        return "permission"
    except (BrokenPipeError, ConnectionResetError):
        return True


# Root sends a request to a process of the user nobody.
pid = by_nobody()
path = home / "memstow" / f"{pid}.{start_ticks(pid)}"
wait_for(path.exists, what="a socket")
wait_for(lambda: refused(path) is True, what="a refusal")
done = memstow("trigger", pid, status=3)
assert "it runs as another user" in done.stderr, done
assert "gave back" in support.run(command, "trigger", pid, preexec_fn=support.as_nobody).stdout

# The user nobody sends a request to root's process, and is refused, even if the file system allows it.
program = Program()
program.tell("owner('a')")
path = program.listening()
assert as_other(lambda: refused(path)) == "permission"
for each, mode in ((program.runtime, 0o755), (path.parent, 0o755), (path, 0o777)):
    os.chmod(each, mode)
assert as_other(lambda: refused(path)) is True
program.ask("trigger")

# The process changes its root, and then its user.
os.mkdir("inside")
program.tell("os.chroot('inside')")
program.ask("trigger")
program.tell("os.setgid(65534), os.setuid(65534)")
for status in pathlib.Path(f"/proc/{program.pid}/task").glob("*/status"):
    assert re.search(r"Uid:\s*65534\s65534\s65534\s65534\n", status.read_text()), status
assert len(list(pathlib.Path(f"/proc/{program.pid}/task").iterdir())) == 3
program.ask("trigger", status=3)
program.end()

# No thread can be made: a note says so.
pid = by_nobody("no_thread")
done = wait_for(lambda: "a thread failed with error 11" in memstow("trigger", pid, status=3).stderr, what="a note")

# A folder in which others can write.
os.chmod(home / "memstow", 0o777)
fallback = pathlib.Path("/tmp/memstow-65534")
if not fallback.exists():
    fallback.mkdir(0o755)
    try:
        pid = by_nobody()
        wait_for(lambda: "folder failed with error 1" in memstow("trigger", pid, status=3).stderr, what="a note")
        fallback.rmdir()
        pid = by_nobody()
        wait_for(lambda: fallback.exists() and list(fallback.iterdir()), what="a socket")
        assert fallback.stat().st_mode & 0o777 == 0o700 and fallback.stat().st_uid == 65534
    finally:
        subprocess.run(["rm", "-rf", fallback])
