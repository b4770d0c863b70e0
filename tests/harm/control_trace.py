"""memstow adds one thread to a program that has an owner, and a worker thread after the first request. Neither takes
signals. The program gets nothing else: no descriptor, no handler, no mask, no child. Only the program's user can use
its socket, which is removed when the program ends."""
import re

from _control import *


def state():
    """The state of the program, without its threads' names and numbers."""
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    # signals 1 to 31; glibc uses some of the others
    masks = [int(mask, 16) & 0x7fffffff for mask in re.findall(r"Sig(?:Blk|Ign|Cgt):\s*(\w+)", status)]
    return (program.tell("descriptors()"), masks, re.findall(r"Umask:.*", status),
            [os.readlink(f"/proc/{program.pid}/fd/{n}") for n in (0, 1, 2)])


program = Program()
before, threads = state(), program.tell("threads()")
assert "it has registered no owner yet" in program.ask("trigger", status=3).stderr
assert not os.path.exists(program.runtime / "memstow")
for name in "abc":
    program.tell(f"owner('{name}')")
path = program.listening()
assert state() == before
assert program.tell("threads()") == sorted([*threads, "memstow"])
program.ask("trigger") # a worker answers it
assert state() == before
assert program.tell("threads()") == sorted([*threads, "memstow", "memstow worker"])
mine = [t for t in os.listdir(f"/proc/{program.pid}/task")
        if open(f"/proc/{program.pid}/task/{t}/comm").read().startswith("memstow")]
for task in mine:
    status = pathlib.Path(f"/proc/{program.pid}/task/{task}/status").read_text()
    blocked = int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16)
    free = {n for n in range(1, 65) if not blocked >> n - 1 & 1}
    assert free == {4, 5, 7, 8, 9, 11, 19, 31, 32, 33}, free # faults, signals that cannot be blocked, glibc's 32 and 33
    held = [os.readlink(f"/proc/{program.pid}/task/{task}/fd/{n}")
            for n in os.listdir(f"/proc/{program.pid}/task/{task}/fd")]
    assert all(name.startswith("socket:") for name in held), held
assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
program.tell("os.umask(0o777)") # the program's umask, which is not the socket's mode
program.end()
assert os.listdir(path.parent) == []

# The program ends in other ways: by _exit, by a signal, by exec.
program = Program(env={})
program.tell("owner('a')")
path = program.listening()
program.begin("os._exit(3)")
assert program.process.wait(20) == 3 and os.listdir(path.parent) == []
program = Program()
program.tell("owner('a')")
stale = program.listening()
os.kill(program.pid, 9)
program.process.wait(20)
assert stale.exists() and not connected(stale)
program = Program()
(path.parent / "1.notes").write_text("not a socket")
program.tell("owner('a')")
other, path = program, program.listening()
assert not stale.exists(), "the next process removes what is left of one that was killed"
assert sorted(os.listdir(path.parent)) == sorted(["1.notes", path.name])
program = Program()
program.tell("owner('a')")
program.listening()
assert connected(path), "but not what is in use"
program.tell("__import__('sys').stdout.flush()")
program.begin(f"os.execv(sys.executable, [sys.executable, '-S', '-c', {LOOP!r}])")
wait_for(lambda: len(os.listdir(f"/proc/{program.pid}/task")) == 1, what="another image") # which answers the next line
assert program.tell("os.getpid()") == program.pid
assert "no owner yet" in program.ask("trigger", status=3).stderr
program.tell("owner('again')")
program.listening()
program.ask("release", "again")
