"""Greenlets switch, and thereby exchange parts of the native stack, while their Python frames are checked
(python_greenlets.py). argv: the probe library."""
import greenlet, random, sys

from _python_frames import expected, local, parse, probe, seen, with_gil

looks = 0


def check():
    """Asserts that the frames are exactly those that Python reports, although other parts of the native stack belong to
    other greenlets."""
    global looks
    for library in (probe, with_gil):
        status, want = seen(library), expected(sys._getframe())
        got = parse(local.buffer.value)[1:]
        assert status == len(got) + 1 and [f[:4] for f in got] == [f[:4] for f in want], (status, got, want)
        looks += 1


def recursion(n):
    return recursion(n - 1) if n else check()


def pause(_=None):
    check()
    greenlet.getcurrent().parent.switch()


def body(n):
    def run():
        for i in range(n + 3):
            pause(), recursion(i * 3), list(map(pause, [1, 2]))
    return run


def deep(n):
    """Calls itself n times, and then switches to other greenlets, so that the parts of the stack always differ."""
    if n:
        return max([1], key=lambda _: deep(n - 1))
    check()
    [g.switch() for g in greenlets if not g.dead]


random.seed(1)
greenlets = [greenlet.greenlet(body(i)) for i in range(20)]
for _ in range(300):
    deep(random.randrange(25))
assert all(g.dead for g in greenlets)
print(looks, "looks")
