"""A loop whose state lies in files takes no memory for the state, however large the state is, neither during a put nor
between iterations. The test runs a loop with a large state and the same loop with a tiny state in one ComfyUI, and
compares their memory. Afterwards no files are left."""
import os, pathlib, shutil

import support
from _comfy import link
from _loops import Loops, node, port

MB = 2**20
MEASURE = '''
import ctypes, gc, os, threading
def resident():
    found = dict(line.split(":") for line in open("/proc/self/status") if line.startswith("Rss"))
    return sum(int(value.split()[0]) for value in found.values()) * 1024
class Sampler(threading.Thread):
    """The largest resident set beyond what it was at the start."""
    def __init__(self):
        super().__init__(daemon=True)
        self.begin = self.most = resident()
        self.samples, self.over = 0, threading.Event()
    def run(self):
        while not self.over.wait(0.001):
            self.most = max(self.most, resident())
            self.samples += 1
measured, sampler = [], None
@node(("INT",), number=INT)
def Between(self, number):
    global sampler
    if sampler is not None: sampler.over.set()
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    measured.append({"between": resident(), "put": sampler.most - sampler.begin if sampler else 0,
                     "samples": sampler.samples if sampler else 0})
    return (number,)
@node((ANY,), before=(ANY,), number=INT, size=INT)
def Large(self, before, number, size):
    global sampler
    if number: assert int(before[0]) == number % 251 and int(before[-1]) == number % 251, (number, before)
    made = torch.full((size,), (number + 1) % 251, dtype=torch.uint8)
    sampler = Sampler()
    sampler.start()
    return (made,)
NODE_CLASS_MAPPINGS.update({"Between": Between, "Large": Large})
@server.PromptServer.instance.routes.get("/test/measured")
async def _measured(request):
    found = list(measured)
    measured.clear()
    return aiohttp.web.json_response(found)
'''
ITERATIONS = 4

import _loops # noqa: E402

_loops.NODES += MEASURE


def step(size):
    return {"number": port("number"), "before": port("large"), "between": node("Between", number=link("number")),
            "large": node("Large", before=link("before"), number=link("between"), size=size),
            "add": node("AddInts", a=link("between"), b=1),
            "large out": port("large", "large"), "number out": port("number", "add")}


def measure(comfy, size, folder):
    """Runs the loop with a state of this many bytes. Returns the memory that the loop measured in each iteration.
    Callers leave out the first iteration, because the loop had put nothing before it."""
    name = comfy.begin(step(size), inputs={"number": 0, "large": [0]}, iterations=ITERATIONS, use_ram=False)
    found = comfy.over(name, 600)
    assert found["state"] == "done" and found["committed"] == ITERATIONS, found
    values = {value["id"]: value for value in comfy.loop(name, False)["values"]}
    assert values["large"]["where"] == "file" and values["large"]["bytes"] >= size, values
    held = held_on_disk(comfy.pid(), folder)
    assert held >= size, f"{held} bytes of files are open in {folder}"
    assert comfy.request("DELETE", f"/memstow/loops?name={name.replace(' ', '%20')}")[0] == 200
    assert not held_on_disk(comfy.pid(), folder), "files of a loop that was forgotten are still open"
    measured = comfy.get("/test/measured")
    assert len(measured) == ITERATIONS, measured
    return measured


def held_on_disk(pid, folder):
    """Returns the bytes on the disk of all files that the process has open in the folder. The files have no names."""
    sizes = {}
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(entry).startswith(f"{folder}/"):
                status = entry.stat()
                sizes[status.st_ino] = status.st_blocks * 512
        except FileNotFoundError:
            pass
    return sum(sizes.values())


def run(size, beyond):
    """Runs the loop with a state of `size` bytes. Asserts that this loop takes less than `beyond` bytes of memory more
    than a loop with a tiny state."""
    folder = support.HERE / "stowed"
    folder.mkdir()
    if shutil.disk_usage(folder).free < 4 * size:
        support.skip(f"{folder} has no room for two generations of {size / MB:.0f} MiB")
    memory = dict(line.split(":") for line in open("/proc/meminfo"))
    if int(memory["MemAvailable"].split()[0]) * 1024 < 2 * size + 4096 * MB:
        support.skip(f"there is not enough memory for a tensor of {size / MB:.0f} MiB beside ComfyUI")
    with Loops(env={"MEMSTOW_STOW_DIR": str(folder)}) as comfy:
        measure(comfy, 1000, folder) # the first loop takes memory that stays: it must not count
        tiny, large = measure(comfy, 1000, folder), measure(comfy, size, folder)
    assert not list(folder.iterdir()), "a file is left"
    base = max(one["between"] for one in tiny[1:])
    between = max(one["between"] for one in large[1:]) - base
    puts = max(one["put"] for one in large[1:])
    assert min(one["samples"] for one in large[1:]) > 20, large
    print(f"{size / MB:.0f} MiB of state: between iterations {between / MB:.1f} MiB beyond a tiny state, "
          f"while it is put {puts / MB:.1f} MiB")
    assert between < beyond, (tiny, large)
    assert puts < beyond, large
