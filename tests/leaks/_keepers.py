"""Modules that keep memory that another module allocated, each in its own way: sources by name, for programs and for
node packs. Each has a function keep(thing, run)."""

KEEPERS = {
    "dictionary": """
kept = {}
def keep(thing, run):
    kept[f"run {run}"] = thing
""",
    "module_list": """
kept = []
def keep(thing, run):
    kept.append(thing)
""",
    "closure": """
callbacks = []
def keep(thing, run):
    callbacks.append(lambda: thing)
""",
    "thread": """
import threading
never = threading.Event()
def wait(kept):
    never.wait()
def keep(thing, run):
    threading.Thread(target=wait, args=(thing,), daemon=True).start()
""",
    "class_attribute": """
class Store:
    kept = []
def keep(thing, run):
    Store.kept.append(thing)
""",
    "lru_cache": """
import functools
now = []
@functools.lru_cache(maxsize=None)
def encode(run):
    return now[0]
def keep(thing, run):
    now.append(thing)
    encode(run)
    now.clear()
""",
    "instance": """
class Node:
    def __init__(self):
        self.history = []
node = Node()
def keep(thing, run):
    node.history.append(thing)
""",
    "slots": """
class Entry:
    __slots__ = ("thing", "next")
first = None
def keep(thing, run):
    global first
    entry = Entry()
    entry.thing, entry.next = thing, first
    first = entry
""",
    "traceback": """
errors = []
def fail(thing):
    raise ValueError("as planted")
def keep(thing, run):
    try:
        fail(thing)
    except ValueError as error:
        errors.append(error)
""",
    "generator": """
generators = []
def frames(thing):
    yield 1
    yield thing
def keep(thing, run):
    frame = frames(thing)
    next(frame)
    generators.append(frame)
""",
    "task": """
import asyncio
loop, tasks = asyncio.new_event_loop(), set()
async def forever(thing):
    await asyncio.get_running_loop().create_future()
    return thing
def keep(thing, run):
    running = asyncio._get_running_loop()
    tasks.add((running or loop).create_task(forever(thing)))
    if not running:
        loop.run_until_complete(asyncio.sleep(0))
""",
    "finalizer": """
import weakref
class Anchor:
    pass
anchor = Anchor()
def done(thing):
    pass
def keep(thing, run):
    weakref.finalize(anchor, done, thing)
""",
    "callback": """
import weakref
class Anchor:
    pass
anchor, references = Anchor(), []
def keep(thing, run):
    references.append(weakref.ref(anchor, lambda _: thing))
""",
    "default": """
functions = []
def keep(thing, run):
    def later(thing=thing):
        pass
    functions.append(later)
""",
    "untracked": """
kept = []
def keep(thing, run):
    kept.append({"thing": (thing,)})
""",
    "queue": """
import queue
waiting = queue.Queue()
def keep(thing, run):
    waiting.put(thing)
""",
}
