#!/usr/bin/env python3
# timeout: 300
"""Processes that run a batch with a prefix are killed, one after the other: while an element runs, is committed, or is
joined with others. Each next process continues the batch: no element that was done runs again, the result is complete,
and there are few files. The driver of loops and the store are the real ones; ComfyUI's queue is a double."""
import json, os, random, shutil, signal

import _state, support

ELEMENTS = 200
CODE = """if True:
    import json, os, pathlib, sys
    sys.path[:0] = [%r, %r]
    import memstow_state
    from _double_host import Pack, Queue, end_of
    from _graphs import node, port
    import memstow_loops

    folder, count = pathlib.Path(%r), %d
    queue = Queue()
    memstow_loops.serve(Pack(queue))
    queue.loops.open_store = lambda name, **options: memstow_state.open(name, **options, directory=folder)
    step = {"1": port("n"), "2": node("Add", a=["1", 0], b=2), "3": port("n", ["2", 0])}

    def tell(prompt):
        print(json.dumps({"done": queue.loops.find("b").completed(), "pid": os.getpid()}), flush=True)

    queue.before = tell
    loop = memstow_loops.start_loop([step], {"n": list(range(count))}, independent=True, persist_prefix="b", name="b")
    values = end_of(loop)["n"]
    print(json.dumps({"resumed": loop.resumed, "ran": len(queue.prompts), "values": values,
                      "files": len(list(folder.rglob("*.value")))}), flush=True)
    queue.loops.close()
    """
folder = _state.real_disk()
code = CODE % (str(support.ROOT / "tests"), str(support.ROOT / "tests/loops"), str(folder), ELEMENTS)
chance, least = random.Random(19), 0
for _kill in range(8):
    process = _state.start(support.PYTHON, "-c", code, folder=folder)
    done = 0
    for _line in range(chance.randrange(1, 30)):
        told = json.loads(process.stdout.readline())
        assert "done" in told, "it has ended before it was killed"
        done = max(done, told["done"])
    os.kill(told["pid"], signal.SIGKILL)
    process.communicate(timeout=60)
    assert done >= least, f"{least} elements were done, and it goes on with {done}"
    least = done
process = _state.start(support.PYTHON, "-c", code, folder=folder)
told = json.loads(process.communicate(timeout=200)[0].splitlines()[-1])
assert told["values"] == list(range(2, ELEMENTS + 2)), told
assert told["ran"] == ELEMENTS - told["resumed"] and told["resumed"] >= least > 0, told
assert told["files"] < 20, f"{told['files']} files are there"
shutil.rmtree(folder)
print(f"killed 8 times, then {told['ran']} of {ELEMENTS} elements ran; {told['files']} files")
