"""A forked child begins without the control thread. From its first owner on it has a socket of its own. It does nothing
to its parent's socket. Forks in the middle of requests harm neither parent nor child."""
from _control import *
from support import expect_exit

program = Program()
program.tell("owner('a')")
path = program.listening()
program.ask("trigger")

# A child that registers nothing, and ends in each way.
assert program.tell("take(0)") == 0
for end in ("os._exit(0)", "sys.exit(0)"):
    program.tell(f"child = os.fork() or ({end})")
    assert program.tell("os.waitpid(child, 0)[1]") == 0
    assert path.exists() and connected(path)

# A child with an owner: it has a thread and a socket of its own, and memstow answers its requests.
LINE = "child = os.fork() or (owner('inner'), time.sleep(100))"
program.tell(LINE)
child = program.tell("child")
inner = path.with_name(f"{child}.{start_ticks(child)}")
wait_for(lambda: connected(inner), what="a socket of the child's")
assert sorted(open(t).read().strip() for t in pathlib.Path(f"/proc/{child}/task").glob("*/comm")).count("memstow") == 1
assert "'inner (test)': released" in memstow("release", child, "inner").stdout
begun = start(MEMSTOW, "stow", program.pid, "a", stdout=subprocess.PIPE, text=True)
ticket = program.tell("take()")[2]
program.tell(LINE)
second = program.tell("child")
wait_for(lambda: connected(path.with_name(f"{second}.{start_ticks(second)}")), what="a socket of the second child's")
assert "'inner (test)': released" in memstow("release", second, "inner").stdout
program.tell(f"done({ticket}, 1 << 20)")
expect_exit(begun, seconds=60)
for each in (child, second):
    program.tell(f"os.kill({each}, 15), os.waitpid({each}, 0)")
assert path.exists()

# Forks from several threads while clients send requests.
program.tell("stop = threading.Event()")
program.tell(
    "answering = threading.Thread(target=lambda: [(r := take(100)) and done(r[2], 7) for _ in iter(stop.is_set, True)])"
)
program.tell(
    "forks = lambda: [os.waitpid(os.fork() or (i % 3 == 0 and owner('x'), os._exit(0)), 0)[1] for i in range(60)]")
program.tell("results = []")
program.tell("workers = [threading.Thread(target=lambda: results.append(set(forks()))) for _ in range(3)]")
program.tell("[t.start() for t in [answering, *workers]]")
for _ in range(20):
    assert "gave back 7 B" in program.ask("trigger").stdout
program.tell("[t.join() for t in workers]")
program.tell("stop.set(), answering.join()")
assert program.tell("results") == [{0}] * 3
program.end()
assert not [name for name in os.listdir(path.parent) if name == path.name]
