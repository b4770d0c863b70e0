"""A process may be stopped while it removes old sockets. When it goes on, it must not remove a socket that another
process has bound meanwhile but does not listen to yet. If a process was killed between binding and listening, its
socket is removed after a minute."""
import os, pathlib, socket, time

import support
from _control import Program

program = support.compile(pathlib.Path(__file__).with_name("control_bound.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-ldl"))
for turn in range(3):
    runtime = pathlib.Path(f"run{turn}").resolve()
    runtime.mkdir(mode=0o700)
    tracked = support.track(program, runtime / "memstow", 40, options=["--stacks=none"], timeout=60,
                            env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
    assert tracked.stdout == "40 of 40\n", tracked

runtime = pathlib.Path("run").resolve()
folder = runtime / "memstow"
folder.mkdir(mode=0o700, parents=True)
for name in (".7.1", ".7.2", "7.3"):
    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(str(folder / name))
os.utime(folder / ".7.1", (time.time() - 100, time.time() - 100))
runtime.chmod(0o700)
child = Program(runtime=runtime)
child.tell("owner('a')")
path = child.listening()
assert sorted(os.listdir(folder)) == sorted([".7.2", path.name]), os.listdir(folder)
child.end()
