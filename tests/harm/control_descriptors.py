"""A program that closes all its descriptors closes none of memstow's, and memstow takes no descriptor numbers from it.
If the program closes an end of a pipe, memstow keeps no copy of it open. If the program has opened nearly all
descriptors that it may have, memstow's control thread still gets its own."""
from _control import *

program = Program()
program.tell("owner('a')")
program.listening()
assert program.tell("[os.pipe() for _ in range(3)][0]")
program.tell("os.closerange(3, 10000)")
assert program.tell("[os.open('own', os.O_RDWR | os.O_CREAT) for _ in range(40)]") == list(range(3, 43))
for _ in range(3):
    program.ask("trigger")
assert os.path.getsize("own") == 0 and program.tell("descriptors()") == list(range(0, 43))

# When the program closes the writing end of a pipe, a read of the other end returns nothing, because the control thread
# holds no copy of the closed end.
program = Program()
program.tell("ends = os.pipe()")
program.tell("owner('a')")
program.listening()
program.ask("trigger")
program.tell("os.close(ends[1])")
assert program.tell("os.read(ends[0], 1)") == b""

# The program may have few descriptors, and has opened nearly all of them.
program = Program()
program.tell("__import__('resource').setrlimit(7, (20, 20))")
program.tell("[os.open('own', os.O_RDWR) for _ in range(20 - len(descriptors()))]")
program.tell("owner('a')")
program.listening()
program.ask("trigger")
for few in (0, 3, 4):
    program = Program(f"-ofew{few}.mst")
    program.tell(f"__import__('resource').setrlimit(7, ({few}, 100))")
    assert program.tell("owner('a')") == 1
    wait_for(lambda: len(os.listdir(f"/proc/{program.pid}/task")) == 1, what="giving up")
    program.tell("__import__('resource').setrlimit(7, (100, 100))")
    assert "no control socket: " in program.ask("trigger", status=3).stderr
    program.end()

# If the limit allows fewer descriptors than the control thread could hold, the thread still answers. If the limit
# allows no descriptor, the thread sleeps and does not spin.
program = Program("-ofewer.mst")
program.tell("owner('a')")
program.listening()
program.tell("__import__('resource').setrlimit(7, (5, 100))")
program.ask("trigger")
program.tell("__import__('resource').setrlimit(7, (0, 100))")
control = control_thread(program.pid)
wait_for(lambda: " (memstow) S " in (control / "stat").read_text(), what="a thread that sleeps")
program.tell("__import__('resource').setrlimit(7, (100, 100))")
program.ask("trigger")
program.end()
