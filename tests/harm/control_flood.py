"""A client may hang, send garbage or half a message, connect a thousand times, or leave at any time. This does no harm:
the program goes on, other clients get answers, and nothing piles up."""
import random

from _control import *

program = Program()
program.tell("owner('a')")
path = program.listening()
held = program.held
few = 4 # three for the numbers of standard input, output and error, and the socket
wait_for(lambda: held() == few, what="the end of a connection")

# Each kind of nonsense gets one answer, and the connection is closed.
EPROTO, EPROTONOSUPPORT, EILSEQ = -71, -93, -84
for nonsense, error in ((b"x", EPROTO), (pack(TRIGGER)[:-1], EPROTO), (pack(TRIGGER) + b"x" * 1000, EPROTO),
                        (pack(STOW), EPROTO), (pack(TRIGGER, 3), EPROTO), (pack(99), EPROTO), (pack(DONE), EPROTO),
                        (pack(TRIGGER, magic=1), EPROTO), (pack(TRIGGER, version=2), EPROTONOSUPPORT),
                        (pack(TRIGGER, length=5), EPROTO), (pack(TRIGGER, text=b"a\nb"), EILSEQ),
                        (pack(TRIGGER, text=b"\xff"), EILSEQ), (b"x" * 60000, EPROTO)):
    connection = connected(path)
    connection.send(nonsense)
    answer = receive(connection)
    assert answer[0] == DONE and answer[2] == error, (nonsense, answer)
    assert receive(connection) is None
connection = connected(path)
connection.send(pack(CANCEL))
assert last(connection)[2] == -125 # ECANCELED: nothing to cancel
connection = connected(path)
connection.send(pack(TRIGGER))
connection.send(pack(TRIGGER))
assert last(connection)[0] == DONE

# A thousand clients that send nothing and stay.
silent = []
for _ in range(1000):
    if connection := connected(path):
        silent.append(connection)
assert len(silent) == 1000
program.ask("trigger")
assert held() <= few + 8
wait_for(lambda: held() == few, what="dropping those who say nothing")
for connection in silent:
    connection.close()

# Garbage, and clients that do not wait for the answer.
seed = random.SystemRandom().randrange(1 << 32)
print("seed", seed)
dice = random.Random(seed)
for _ in range(3000):
    send_garbage(path, dice)
program.ask("trigger")
wait_for(lambda: held() == few, what="closing")

# If clients send requests and do not read the answers, the requests are handled all the same.
program.tell("take(0)")
asking = []
for _ in range(8):
    connection = connected(path)
    connection.send(pack(STOW, 1))
    asking.append(connection)
waiting = start(MEMSTOW, "trigger", program.pid, stdout=subprocess.PIPE, text=True) # waits: there is room for 8
tickets = [program.tell("take()")[2] for _ in range(8)]
assert program.process.poll() is None and len(set(tickets)) == 8
for ticket in tickets:
    program.tell(f"done({ticket}, 0)")
ticket = program.tell("take()")[2]
program.tell(f"done({ticket}, 1 << 20)")
assert "gave back 1.0 MiB" in waiting.communicate(timeout=60)[0]
for connection in asking:
    assert last(connection)[2] == 0

# Clients leave while the program works on their requests. The entries of these requests in the queue stay taken until
# the program has answered, and are free after that.
for _ in range(16):
    connection = connected(path)
    connection.send(pack(STOW, 1))
    receive(connection)
    tickets.append(program.tell("take()")[2])
    connection.close()
wait_for(lambda: held() == few, what="closing")
done = program.ask("stow", "a", status=1)
assert "too many requests are unanswered" in done.stderr, done.stderr
for ticket in tickets[8:]:
    assert program.tell(f"done({ticket}, 0)") == 0
assert "withdrawn: the process did not begin the request in time" in program.ask(
    "stow", "a", "--timeout=0.2", status=1).stderr
program.end()
