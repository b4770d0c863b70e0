#!/usr/bin/env python3
# needs: torch
# timeout: 300
"""The memory of a batch on disk, with the driver over the real store and a double of ComfyUI's queue. While it runs,
also while values are put together into one, it takes at most 64 MiB more; and nobody but the store has its inputs."""
import _state, support

CODE = """if True:
    import gc, logging, re, sys, time
    sys.path[:0] = [%r, %r]
    import torch
    from _double_host import Pack, Queue, end_of
    from _graphs import port
    import memstow_loops

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
    """ % (str(support.ROOT / "tests"), str(support.ROOT / "tests/loops"))
folder = _state.real_disk()
print(_state.python(CODE, folder, timeout=250).stdout)
folder.rmdir()
