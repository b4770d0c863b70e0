"""Requests through the control socket. memstow answers by itself until the program asks for requests; then the program
answers. Each request is answered once, with its result and text. A client that leaves takes back its request if nobody
has begun it."""
import pathlib, re, signal, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import _terminal
from _control import *


def caught(pid):
    return int(re.search(r"SigCgt:\s*(\w+)", open(f"/proc/{pid}/status").read())[1], 16)


program = Program()
one = program.tell("owner('one')")
program.listening()

# memstow answers by itself.
assert "gave back 0 B: no owner has memory\n" in program.ask("trigger").stdout
assert f"custom {one} 'one (test)': released" in program.ask("release", "one").stdout
assert program.ask("release", one).stdout == program.ask("release", "one").stdout
assert f"no model, custom or state is called 'two': see 'memstow owners {program.pid}'" in \
    program.ask("stow", "two", status=1).stderr
twins = [program.tell(f"owner('twin', 1, '{file}.st')") for file in "ab"]
told = f"'twin' is the name of owners {twins[0]} (a.st) and {twins[1]} (b.st): say which id\n"
assert told in program.ask("stow", "twin", status=1).stderr
assert "no owner has the id 77" in program.ask("restore", 77, status=1).stderr

# The program answers.
assert program.tell("take(0)") == 0
begun = start(MEMSTOW, "stow", program.pid, "one", stdout=subprocess.PIPE, text=True)
kind, owner, ticket, text, reason = program.tell("take()")
assert (kind, owner, text, reason) == (STOW, one, "", 0), (kind, owner, text, reason)
assert program.tell(f"done({ticket} + 1, 0)") == -2 # ENOENT
assert program.tell(f"done({ticket}, 5 << 20, 'to the disk\\x1b[31m')") == 0
assert program.tell(f"done({ticket}, 0)") == -2
assert begun.communicate(timeout=60)[0] == f"custom {one} 'one (test)': stowed 5.0 MiB: to the disk\n"
assert begun.returncode == 0
begun = start(MEMSTOW, "trigger", program.pid, "--reason=größer", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
              text=True)
kind, owner, ticket, text, reason = program.tell("take()")
assert (kind, owner, text, reason) == (TRIGGER, 0, "größer", 2)
assert program.tell(f"done({ticket}, -28, 'no room')") == 0
assert begun.communicate(
    timeout=60)[1] == f"memstow: process {program.pid}: not done: No space left on device: no room\n"
assert begun.returncode == 1

# The program does not take the request, or takes it and does not finish it.
done = program.ask("stow", "one", "--timeout=0.3", status=1)
assert "withdrawn: the process did not begin the request in time" in done.stderr, done.stderr
assert program.tell("take(0)") == 0
program.begin("take()")
begun = start(MEMSTOW, "stow", program.pid, "one", "--timeout=1", stderr=subprocess.PIPE, text=True)
ticket = program.after()[2]
assert "not finished in time: the request goes on" in begun.communicate(timeout=60)[1] and begun.returncode == 1
assert program.tell(f"done({ticket}, 0)") == 0
begun = start(MEMSTOW, "stow", program.pid, "one", stderr=subprocess.PIPE, text=True)
connection = connected(program.socket_path()) # an idle client does not delay others
wait_for(lambda: caught(begun.pid) & 2, what="a handler of SIGINT")
begun.send_signal(signal.SIGINT)
assert "not stowed: cancelled" in begun.communicate(timeout=60)[1] and begun.returncode == 1
killed = start(MEMSTOW, "stow", program.pid, "one")
connection = connected(program.socket_path())
connection.send(pack(TRIGGER))
assert receive(connection)[0] == WAITING
connection.close()
killed.kill()
killed.wait()
wait_for(lambda: program.tell("take(0)") == 0, what="taking back")

# At one Ctrl-C the command may get two SIGINTs at nearly the same time, from the terminal and from a supervisor of the
# command. They count as one. The command cancels its request and waits for the answer. At a later SIGINT it leaves the
# request to the program. The test tries three times, because on a slow machine the second of the two SIGINTs may come
# so late that it counts as a later SIGINT.
def interrupted_twice():
    begun = start(MEMSTOW, "stow", program.pid, "one", stderr=subprocess.PIPE, text=True)
    ticket = program.tell("take()")[2]
    wait_for(lambda: caught(begun.pid) & 2, what="a handler of SIGINT")
    begun.send_signal(signal.SIGINT)
    time.sleep(0.3) # the command looks for a SIGINT every 0.2 s
    begun.send_signal(signal.SIGINT)
    time.sleep(0.7)
    return begun, ticket


for attempt in range(3):
    begun, ticket = interrupted_twice()
    if begun.poll() is None:
        break
    assert "left alone" in begun.stderr.read() and program.tell(f"done({ticket}, 0)") == 0
assert begun.poll() is None, "the second SIGINT counted as another Ctrl-C"
assert program.tell(f"done({ticket}, -125)") == 0 # ECANCELED
assert "not stowed: cancelled" in begun.communicate(timeout=60)[1] and begun.returncode == 1
begun, ticket = interrupted_twice()
wait_for(lambda: begun.send_signal(signal.SIGINT) or time.sleep(0.7) or begun.poll() is not None, what="its end")
said = begun.communicate(timeout=60)[1]
assert "not waited for any longer: the request goes on" in said and begun.returncode == 1, said
assert program.tell(f"done({ticket}, 0)") == 0

# On a terminal the command shows its progress in a line, and removes this line at the end.
_terminal.need()
program.begin("[r := take(), time.sleep(2.5), done(r[2], 1 << 20)][2]")
shown = _terminal.shown(80, MEMSTOW, "stow", str(program.pid), "one")
assert program.after() == 0
assert f"\r\x1b[Kcustom {one} 'one (test)': stowing (1 s)\r" in shown, shown
assert shown.endswith(f"\r\x1b[Kcustom {one} 'one (test)': stowed 1.0 MiB\r\n"), shown

# First the socket is gone; then another program has a socket in its place.
path = program.socket_path()
os.rename(path, path.with_name("aside"))
assert "its control socket is gone" in program.ask("trigger", status=3).stderr
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
    other.bind(str(path))
    assert "its control socket is gone" in program.ask("trigger", status=3).stderr
    other.listen()
    assert "its control socket belongs to another process" in program.ask("trigger", status=3).stderr
os.rename(path.with_name("aside"), path)
program.tell("answer = threading.Thread(target=lambda: (r := take()) and done(r[2], 0)).start()")
program.ask("trigger")
program.end()
assert not os.listdir(program.runtime / "memstow")
