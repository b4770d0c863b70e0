#!/usr/bin/env python3
# needs: torch
# timeout: 300
"""Tests how much memory loops take. The driver of loops and the store are the real ones; ComfyUI's queue is a double.
While a batch on disk runs, it takes at most 64 MiB more than its inputs, even while values are joined into one. After
the batch's end only the store has the batch's inputs. If the present iteration has replaced a value, a reader can still
get the committed value, and no copy of that value is made."""
import _state, support

CODE = """if True:
    import gc, logging, re, sys, time
    sys.path[:0] = [%r, %r]
    import torch
    from _double_host import MORE, Pack, Queue, end_of
    from _graphs import described, port
    import memstow_loops
    from memstow_loops import InfoClasses

    MB = 2**20

    def resident(part="VmRSS"):
        return int(re.search(part + r":\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) * 1024

    queue, most, folded = Queue(), [0], []
    memstow_loops.serve(Pack(queue))
    queue.loops.open_store = lambda name, **options: memstow_state.open(name, **options, directory=folder)
    put = memstow_state.Store.put

    def measured(store, id, value):
        put(store, id, value)
        most[0] = max(most[0], resident())
        if ":" in id:
            folded.append(id)

    memstow_state.Store.put = measured
    same = {"1": port("v"), "2": port("v", ["1", 0])}
    for independent in (True, False):
        before = resident("RssAnon")
        values = [torch.full((6 * MB // 4,), float(number)) for number in range(30)]
        with_inputs = most[0] = resident()
        queue.before = lambda prompt: gc.collect() # the double's values of the last prompt are in a cycle
        loop = memstow_loops.start_loop([same], {"v": values if independent else torch.cat(values)},
                                        1 if independent else 3, use_ram=False, independent=independent)
        loop.wait(200)
        assert loop.state == "done", loop.error
        del values
        gc.collect()
        left = resident("RssAnon") - before
        print(independent, (most[0] - with_inputs) // MB, left // MB, len(folded))
        assert left < 32 * MB, f"the loop has ended, and {left // MB} MiB of its inputs are there"
        if independent:
            assert folded and most[0] - with_inputs < 64 * MB, (folded, (most[0] - with_inputs) // MB)
            found = loop.values()["v"]
            assert all(bool((value == number).all()) for number, value in enumerate(found)), found
            del found
        queue.loops.drop(loop)

    def read_replaced(prompt):
        if len(queue.prompts) != 4: # the second workflow of the second iteration
            return
        gc.collect()
        before = resident("RssAnon")
        views = [read_loop.committed_values("v")[0], read_loop.values()["v"]]
        views[0][0] = 7.0 # the store and the other reader do not see it
        grown = resident("RssAnon") - before
        found.append(([float(view[0]) for view in views], float(read_loop.look("v")[0][0]), grown))

    queue.classes = InfoClasses({**MORE, "Add": described(["*"], a=["*", {}], b=["INT", {}])})
    add = {"1": port("v"), "add": {"class_type": "Add", "inputs": {"a": ["1", 0], "b": 1}}, "2": port("v", ["add", 0])}
    for use_ram in (True, False):
        found, queue.before = [], read_replaced
        queue.prompts.clear()
        read_loop = memstow_loops.start_loop([add, same], {"v": torch.zeros(96 * MB // 4)}, 2, use_ram=use_ram)
        read_loop.wait(200)
        assert read_loop.state == "done", read_loop.error
        (values, newest, grown), = found
        print(values, newest, grown // MB)
        assert values == [7.0, 1.0] and newest == 2.0, found
        assert grown < 16 * MB, f"reading a replaced value took {grown // MB} MiB"
        queue.loops.drop(read_loop)
    """ % (str(support.ROOT / "tests"), str(support.ROOT / "tests/loops"))
folder = _state.real_disk()
print(_state.python(CODE, folder, timeout=250).stdout)
folder.rmdir()
