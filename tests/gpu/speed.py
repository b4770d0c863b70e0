# timeout: 900
# shows
"""The speed table. It has three measurements: what the hooks add to a pair of cuMemAllocAsync and cuMemFreeAsync; what
they add while the device is busy; and the speed of moves. Moves are compared with the driver's own copies of the same
amount of pinned memory in the same run. The test fails if a goal is missed.

Moves are measured in two ways. To host memory that stays pinned, all moves but the first have a goal. Through pinned
buffers there is no goal, because the speed then also depends on the host's processors and memory."""
import os, pathlib, statistics

import _gpu, support

GIB = 1 << 30
PROGRAM = support.BUILD / "tests/gpu/speed"


def parse(output):
    """Returns {name: seconds}. The result is empty over a test double, because no figure is shown there."""
    words = [line.split() for line in output.split("\n")]
    return {w[0]: float(w[1]) for w in words if len(w) == 2 and w[1].replace(".", "", 1).isdigit()}


def measure(*words, options=None, **environment):
    """options None: without memstow."""
    env = {**os.environ, **environment}
    under = {} if options is None else {"options": options, "file": "speed.mst"}
    done = _gpu.kept("speed", support.track if under else support.run, PROGRAM, *words, env=env, **under)
    assert done.returncode == 0 and done.stdout.rstrip().endswith("ok"), done.stdout + done.stderr
    return parse(done.stdout)


def row(what, figure, goal, met):
    return f"{what:72} {figure:>12}  {goal:>10}{'' if met else '  MISSED'}", met


def pair_rows():
    alone = min(measure("pairs")["pair"] for _ in range(3))
    for options in ([], ["--stacks=none"]):
        added = (min(measure("pairs", options=options)["pair"] for _ in range(3)) - alone) * 1e9
        yield row(f"added to a pair, memstow run {' '.join(options)}", f"{added:.0f} ns", "<= 500 ns", added <= 500)


def kernel_row():
    pairs = [(measure("kernels"), measure("kernels", options=[])) for _ in range(7)]
    ratio = statistics.median(t["kernels"] for _a, t in pairs) / statistics.median(a["kernels"] for a, _t in pairs)
    return row("kernel-bound work, of the time without memstow", f"{ratio:.4f}", "<= 1.005", ratio <= 1.005)


def stayed_pinned():
    """The bytes of the host that were pinned at the end of the last measured program."""
    return support.report("speed.mst")["residency"]["device_buffer_bytes"]


def measure_moves(size, pins):
    """With `pins`, the model moves to host memory that stays pinned. Otherwise, it moves through pinned buffers."""
    wish = {"MEMSTOW_CUDA_PINNED": str(2 * size)} if pins else {}
    found = measure("moves", size, options=[], MEMSTOW_CUDA_MOVES="2M", **wish)
    assert (stayed_pinned() >= size) == pins, f"{stayed_pinned()} bytes stayed pinned, for a model of {size}"
    return found


def move_rows(size, pins):
    found = measure_moves(size, pins)
    for way in ("out", "back"):
        copy, first, later = found[f"copy_{way}"], found[f"first_{way}"], found[f"later_{way}"]
        name = f"{size // GIB} GiB {way}, {'memory that stays pinned' if pins else 'through pinned buffers'}"
        yield row(f"{name}: pinned copy", f"{size / copy / 1e9:.1f} GB/s", "", True)
        yield row(f"{name}: first time, of the copy's speed", f"{copy / first:.2f}", "", True)
        yield row(f"{name}: warm, of the copy's speed", f"{copy / later:.2f}", ">= 0.95" if pins else "",
                  not pins or copy / later >= 0.95)


def rows(sizes):
    yield from pair_rows()
    yield kernel_row()
    for size in sizes:
        yield from move_rows(size, pins=True)
        yield from move_rows(size, pins=False)


def fits(size):
    """Whether the host has memory for three copies of this size. Two copies are made. The memory for the third must
    stay free, because memstow pins memory ahead of need only while the system has at least as much memory left as is
    pinned."""
    available = next(int(line.split()[1]) << 10 for line in pathlib.Path("/proc/meminfo").read_text().split("\n")
                     if line.startswith("MemAvail"))
    return 3 * size <= available


def outside():
    if _gpu.is_double():
        measure("pairs"), measure("kernels", options=[])
        measure_moves(256 << 20, pins=True), measure_moves(256 << 20, pins=False)
        print("over a test double: no figures")
        return
    missed = 0
    for line, met in rows([size for size in (GIB, 4 * GIB) if fits(size)]):
        print(line, flush=True)
        missed += not met
    assert not missed, "a goal was missed"


if __name__ == "__main__":
    _gpu.main(__file__, outside)
