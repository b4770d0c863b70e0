#!/usr/bin/env python3
# timeout: 200
"""A program stows and restores its own owners, and starts triggers. `memstow owners` shows the progress of each move.
`--cancel` ends a move from outside after the present chunk. If the move belongs to a trigger, the rest of the trigger
ends, too. Later moves are complete. `--cancel` also ends a move that another client requested, and that client is
told."""
import errno, json, pathlib, random, re, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harm"))
import _moving
from _control import *

SIZE, MODELS, ECANCELED = 256 << 20, 3, -125
# until_cut_short() makes the same moves again and again, until a move is cancelled or moves less than there was.
SETUP = rf"""
import zlib
for name in ("owner_open", "stow", "restore", "trigger"):
    getattr(abi, "memstow_" + name).restype = ctypes.c_int64
models, blocks = [], []
for i in range({MODELS}):
    models.append(abi.memstow_owner_open(1, b"model%d" % i, b"", ctypes.c_uint64(i + 1), ctypes.c_uint64(0)))
    assert abi.memstow_owner_policy(models[i], 2, 0) == 0 and abi.memstow_scope_enter(models[i]) == 0
    blocks.append(bytearray({SIZE}))
    assert abi.memstow_scope_leave(models[i]) == 0
    blocks[i][:] = bytes((i + k) % 256 for k in range(4096)) * ({SIZE} // 4096)
def until_cut_short(*calls):
    while True:
        for name, call, whole in calls:
            moved = call()
            if moved != whole:
                return name, moved
def out(i): return ("out", lambda: abi.memstow_stow(models[i]), {SIZE})
def back(i): return ("back", lambda: abi.memstow_restore(models[i]), {SIZE})
def trigger(): return min(abi.memstow_trigger(1, None), {SIZE * MODELS}) # more, where something besides was free
def sums(): return [zlib.crc32(block) for block in blocks]
"""


def owners():
    return {o["name"]: o for o in json.loads(memstow("owners", program.pid, "--json").stdout)["owners"]}


def seen_moving(way):
    """Waits until model0's move is on its way. The progress must be right, as JSON and as text."""
    def look():
        owner = owners()["model0"]
        return owner if owner["moving"] == way and 0 < owner["moved_bytes"] < owner["to_move_bytes"] else None
    owner = wait_for(look, seconds=60, what=f"model0 moving {way}")
    assert owner["to_move_bytes"] == SIZE, owner
    assert not owners()["model1"]["moving"]
    word = {"out": "stowing", "back": "restoring"}[way]
    wait_for(lambda: re.search(rf"model0, {word} \d+\.\d MiB of 256\.0 MiB", memstow("owners", program.pid).stdout),
             seconds=60, what="the same as text")


def cancel(verb, *owner):
    """Cancels again and again, until the program answers that a move has been cut short. If a cancel comes in the last
    chunk of a move, this move is complete, and a later cancel must hit the next move. Returns the bytes that the last
    command reported."""
    said = ""

    def attempt():
        nonlocal said
        done = memstow(verb, program.pid, *owner, "--cancel", status=None)
        if done.returncode:
            assert done.returncode == 1 and f"no memory of it is being {PAST[verb]}" in done.stderr, done
            return program.has_answered()
        said = done.stdout
        return program.has_answered(seconds=5)
    wait_for(attempt, seconds=60, what=f"{verb} --cancel")
    of = f"model {models[0]} 'model0'" if owner else f"process {program.pid}"
    found = re.fullmatch(rf"{of}: cancelled, (\S+ \S+?)(?: of 256\.0 MiB)? {PAST[verb]}\n", said)
    assert found, said
    return found[1]


def text_of(size):
    return "0 B" if size <= 0 else f"{size / MIB:.1f} MiB"


PAST, MIB = {"stow": "stowed", "restore": "restored"}, 1 << 20
folder = _moving.real_disk()
program = Program(env={"MEMSTOW_STOW_DIR": str(folder)})
program.tell(f"exec({SETUP!r})")
models, before = program.tell("models"), program.tell("sums()")
path = program.listening()

nothing = memstow("stow", program.pid, "--cancel", status=1)
assert nothing.stderr == f"memstow: process {program.pid}: no memory of it is being stowed\n", nothing.stderr

# The program's only thread moves one owner out and back, again and again, until a move is cancelled.
for verb, way, owner in (("stow", "out", ()), ("restore", "back", ("model0",)), ("stow", "out", (models[0],))):
    program.begin("until_cut_short(out(0), back(0))")
    seen_moving(way)
    memstow(verb, program.pid, "model1", "--cancel", status=1) # another owner's move
    said = cancel(verb, *owner)
    name, moved = program.after()
    assert name == way and (moved == ECANCELED or 0 <= moved < SIZE) and said == text_of(moved), (name, moved, said)
    now = owners()["model0"]
    assert (now["moving"], now["moved_bytes"], now["to_move_bytes"]) == (None, 0, 0)
    assert program.tell("sums()") == before
    assert program.tell("abi.memstow_restore(models[0])") >= 0
    assert program.tell("abi.memstow_stow(models[0])") == SIZE, "what was cancelled was another call"
    assert program.tell("abi.memstow_restore(models[0])") == SIZE

# A trigger moves one owner after the other. If it is cancelled, the owners whose move has not begun stay in memory.
program.begin(f"until_cut_short(('trigger', trigger, {SIZE * MODELS}), *(back(i) for i in range({MODELS})))")
seen_moving("out")
cancel("stow")
name, moved = program.after()
assert name == "trigger" and (moved == ECANCELED or 0 <= moved < SIZE * MODELS), (name, moved)
left = [owners()[f"model{i}"]["stowed_bytes"] for i in range(MODELS)]
assert sum(left) < SIZE * MODELS and left == sorted(left, reverse=True), left
assert program.tell("abi.memstow_trigger(1, None)") >= SIZE * MODELS - sum(left)
assert [owners()[f"model{i}"]["stowed_bytes"] for i in range(MODELS)] == [SIZE] * MODELS
assert program.tell("sums()") == before

# If the next move begins at once, the report is still about the cancelled move.
assert all(program.tell(f"abi.memstow_restore(models[{i}])") == SIZE for i in range(MODELS))
for _ in range(3):
    program.begin(
        f"until_cut_short(('both', lambda: (abi.memstow_stow(models[0]), abi.memstow_restore(models[0]))[0], {SIZE}))")
    seen_moving("out")
    said, (name, moved) = cancel("stow"), program.after()
    assert said == text_of(moved), (moved, said)


def end_move(verb, asked):
    """At some moment, ends the move that `asked` has requested. Returns the moved bytes, or None if the move was over
    before. This function speaks to the socket itself, because a command, above all one with sanitizers, may take longer
    to start than the whole move takes."""
    time.sleep(random.uniform(0, 0.3))
    while asked.poll() is None:
        connection = connected(path)
        connection.send(pack(END, number={"stow": STOW, "restore": RESTORE}[verb]))
        number = last(connection)[2]
        connection.close()
        if number != -errno.ENOENT:
            return number
    return None


def cut_from_outside(verb):
    """One client requests a move, and another client ends it. Asserts that both are told the same. Returns whether the
    move ended after some of its bytes, but not all, had moved."""
    program.tell(f"abi.memstow_{'restore' if verb == 'stow' else 'stow'}(models[0])")
    asked = start(MEMSTOW, verb, program.pid, "model0", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        moved = end_move(verb, asked)
    finally:
        told = asked.communicate(timeout=60)[0]
    model = f"model {models[0]} 'model0'"
    if moved is None or moved == SIZE:
        expected = 0, f"{model}: {PAST[verb]} {text_of(SIZE)}\n"
    elif moved == 0:
        expected = 1, f"memstow: {model}: not {PAST[verb]}: cancelled\n"
    else:
        expected = 0, f"{model}: {PAST[verb]} {text_of(moved)}: the move was cancelled\n"
    assert (asked.returncode, told) == expected, (moved, asked.returncode, told)
    return moved not in (None, 0, SIZE)


# The client that requested a move is told that another client has ended it.
for verb in ("stow", "restore"):
    wait_for(lambda: cut_from_outside(verb), seconds=60, what="a move that is cut short")

# The trace reports only the locked memory as not moved: the rest had moved before.
program.tell("abi.memstow_stow(models[0])")
LOCKED = 4 << 20
program.tell("abi.mlock(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(blocks[0])) + (100 << 20)), "
             f"ctypes.c_size_t({LOCKED}))")
program.tell("abi.memstow_stow(models[0])")
lines = json.loads(memstow("decisions", program.pid, "--json").stdout)["lines"]
refused = [line for line in lines if line["kind"] == "REFUSED"][-1]
assert "mlock" in refused["because"] and LOCKED <= refused["bytes"] <= LOCKED + 8192, refused
assert program.tell("sums()") == before
program.end()
assert not list(folder.iterdir())
folder.rmdir()
