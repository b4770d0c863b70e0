# timeout: 900
# long
"""Like control_flood, but clients send garbage for ten minutes. The program goes on and answers, and nothing piles
up."""
import random, time

from _control import *

SECONDS = 600
program = Program()
program.tell("owner('a')")
path, few = program.listening(), 4
wait_for(lambda: program.held() == few, what="the end of a connection")
seed = random.SystemRandom().randrange(1 << 32)
print("seed", seed)
dice, end, sent = random.Random(seed), time.monotonic() + SECONDS, 0
while time.monotonic() < end:
    for _ in range(1000):
        send_garbage(path, dice)
    sent += 1000
    assert program.process.poll() is None and program.held() <= few + 8
    assert ": released" in program.ask("release", "a").stdout
print(sent, "connections")
wait_for(lambda: program.held() == few, what="closing")
program.end()
