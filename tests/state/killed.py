#!/usr/bin/env python3
# timeout: 300
"""Kills a process with a loop and a prefix at 200 random moments, by SIGKILL. Each next process goes on from the last
committed iteration, with all values of that iteration and no others, and there is one set of files."""
import os, random, signal, time

import _state

MOMENTS = 200
program, folder = _state.program(), _state.real_disk()
seed = random.randrange(1 << 32)
print("seed", seed)
chance = random.Random(seed)


def one(last, wait):
    """Starts the program, and kills it `wait` seconds after its first line or its first commit. Returns the last
    generation that it reported as committed."""
    process = _state.start(program, "persist", folder=folder)
    try:
        line = process.stdout.readline()
        assert line.startswith("from "), f"after {last}: {line}{process.stdout.read()}"
        at, pid = int(line.split()[1].strip(",")), int(line.split()[3])
        assert last <= at <= last + 1, f"it had committed {last}, and goes on from {at}"
        if chance.random() < 0.4: # waits for a commit: on a slow machine none may come within `wait` seconds
            last = at = int(process.stdout.readline())
        time.sleep(wait)
    finally:
        if line.startswith("from "):
            os.kill(pid, signal.SIGKILL)
        process.wait(60)
    said = [int(text) for text in process.stdout.read().split("\n") if text.strip().isdigit()]
    return said[-1] if said else at


last = 0
for moment in range(MOMENTS):
    last = one(last, chance.choice((0.002, 0.01, 0.03)) * chance.random())
names = sorted(path.name for path in (folder / "a loop/of two.state").iterdir())
print(last, "iterations", names)
assert last > MOMENTS / 4, last
# The next process finds one complete set of files. It removes the files that the killed process was about to name.
left = _state.python("""
    store = memstow_state.open("after", persist_prefix="a loop/of two", directory=folder)
    print(store.generation, *sorted(os.listdir(folder / "a loop/of two.state")))
    store.close(keep=True)
    print(*sorted(os.listdir(folder / "a loop/of two.state")))
    store = memstow_state.open("after", persist_prefix="a loop/of two", directory=folder)
    store.close()
    """, folder).stdout.split("\n")
generation, *names = left[0].split()
stays = [name for name in names if name.startswith("stays.")]
expected = sorted([f"a%2F1.{generation}.value", f"b.{generation}.value", "lock", "manifest", *stays])
assert len(stays) == 1 and names == expected, (names, expected)
assert left[1].split() == [name for name in expected if name != "lock"], left
assert not list(folder.iterdir()), list(folder.iterdir())
folder.rmdir()
