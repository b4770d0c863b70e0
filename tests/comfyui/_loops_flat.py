"""The memory of a loop that carries a latent of a megabyte, a number and a text, with one of ComfyUI's node caches.

Memory is measured in two spans of a hundred iterations. The first span begins at iteration 20 or later. Each of these
figures grows by less than 1 MB in a span:
- live memory;
- the ledger file;
- the resident set without the ledger file, without views of values, and without the freed memory that the allocator
  retains (the report says how much that is).

What could disturb the measurement:
- An iteration may free its memory late. So readings are taken in four iterations at each end of a span, and the least
  of the four counts.
- The first readings themselves take memory. So two readings are taken before the first span, and do not count.
- The pictures of the peak take memory in the ledger file. So the program has two peaks early, which fill both pictures
  before the first span.
- A view of the latent takes a megabyte as long as a node or the node cache has the view, which may be long. So the
  resident set is counted without views. At the end at most one view is there.
- The list of the last 32 run reports (4 KiB each) is not full at iteration 20. So a first span that begins there
  includes the growth of this list.

While the loop runs, the report names its values by loop and id. memstow leaks finds nothing. The values are gone when
the loop is forgotten."""
import json, time

import support
from _comfy import link
from _loops import Loops, node, port

MB = 2**20
MEASURE = f'''
MEMSTOW = {str(support.MEMSTOW)!r}
''' + '''
import ctypes, gc, json, os, subprocess, time
measured = {}
def settled(): # the driver lets go of the iteration before while this one runs
    import memstow
    least = None
    for _ in range(8):
        gc.collect()
        memstow.peak(True)
        live = memstow.peak(False)
        least = live if least is None else min(least, live)
        time.sleep(0.03)
    return least
def resident(): # in the ledger, which is a mapped file, and in views of values
    ledger = views = 0
    name = ""
    for line in open("/proc/self/smaps"):
        if "-" in line.split(" ", 1)[0]: name = line.rstrip()
        elif line.startswith("Rss:"):
            size = int(line.split()[1]) * 1024
            if name.endswith(".mst"): ledger += size
            if "/memfd:" in name: views += size
    return ledger, views
def parts():
    env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    told = subprocess.run([MEMSTOW, "report", str(os.getpid()), "--json", "--top=1"], env=env,
                          stdout=subprocess.PIPE, check=True)
    found = json.loads(told.stdout)["residency"]
    return {name: size for name, size in found.items() if name.endswith("_bytes")}
@node(("INT",), number=INT)
def Measure(self, number):
    if number in (5, 10):
        bytearray(number << 26)
        for _ in range(5000): bytearray(2 << 20) # with each some sites of the picture
    counted = (FIRST, FIRST + 100, FIRST + 200)
    at = next((at for at in counted if at - 3 <= number <= at), 1 if number in (15, 16) else 0)
    if at:
        live = settled()
        ctypes.CDLL(None).malloc_trim(0)
        found = parts()
        ledger, views = resident()
        here = {**found, "live": live, "ledger": ledger, "views": views,
                "rss": found["rss_bytes"] - found["retained_bytes"] - ledger - views}
        measured[at] = {what: min(size, here[what]) for what, size in measured.get(at, here).items()}
    return (number,)
NODE_CLASS_MAPPINGS["Measure"] = Measure
@server.PromptServer.instance.routes.get("/test/measured")
async def _measured(request):
    return aiohttp.web.json_response(measured)
'''
STEP = {"latent": port("latent"), "number": port("number"), "measure": node("Measure", number=link("number")),
        "mix": node("Mix", latent=link("latent"), number=link("measure")),
        "add": node("AddInts", a=link("measure"), b=1), "append": node("Append", text="so far ", number=link("number")),
        "latent out": port("latent", "mix"), "number out": port("number", "add"), "text out": port("text", "append")}
BEGIN = {"new": node("NewLatent", size=256), "out": port("latent", "new")}

import _loops # noqa: E402

_loops.NODES += MEASURE


def run(*cache, first=20, resident=all):
    """Runs the loop with these options of ComfyUI, which choose its node cache. The growth counts from iteration
    `first` on. resident: whether the resident set must be flat in `all` spans of a hundred iterations, or in `any`."""
    _loops.NODES = _loops.NODES.replace("FIRST", str(first))
    iterations = first + 201
    # Without --python-objects, Python's next arena of 1 MiB would count. The quick start is off, because with it a
    # thread frees memory of many sites for the first time while growth is measured, and gets up to 2 MB of counters for
    # them.
    with Loops(*cache, options=("--python-objects",), quick=False) as comfy:
        name = comfy.begin(BEGIN, STEP, inputs={"number": 0}, iterations=iterations, name="flat",
                           when=[{"port": "number", "op": "==", "value": 0}, None])
        support.wait_for(lambda: time.sleep(1) or comfy.loop(name, False)["committed"] > 30, 600, "thirty iterations")
        report = json.loads(support.memstow("report", comfy.pid(), "--json", "--by=model").stdout)
        owners = {owner["name"]: owner for owner in report["owners"]}
        assert {"state:flat/latent", "state:flat/number", "state:flat/text"} <= set(owners), sorted(owners)
        assert owners["state:flat/latent"]["live_bytes"] >= MB, owners["state:flat/latent"]
        # Asks only every two seconds. Otherwise there would be thousands of requests on a slow machine, and the test is
        # not to measure requests.
        support.wait_for(lambda: time.sleep(2) or comfy.loop(name, False)["state"] != "running", 1500, "its end")
        found = comfy.loop(name)
        assert found["state"] == "done" and found["committed"] == iterations, found
        measured = comfy.get("/test/measured")
        readings = [measured[str(first + number)] for number in (0, 100, 200)]
        growth = [{what: size - before[what] for what, size in after.items()}
                  for before, after in zip(readings, readings[1:])]
        for one in growth:
            print({what: f"{size / 1024:.0f} KiB" for what, size in one.items() if size})
        print(f"{found['seconds'] / iterations * 1000:.1f} ms an iteration")
        assert all(one["live"] < 10**6 and one["ledger"] < 10**6 for one in growth), measured
        assert resident(one["rss"] < 10**6 for one in growth), measured
        assert readings[-1]["views"] < 2 * MB, measured # the last view may be let go of late
        leaks = support.memstow("leaks", comfy.pid(), status=None)
        assert leaks.returncode == 0 and "No leak found" in leaks.stdout, leaks.stdout + leaks.stderr
        assert comfy.request("DELETE", "/memstow/loops?name=flat")[0] == 200
        report = json.loads(support.memstow("report", comfy.pid(), "--json", "--by=model").stdout)
        assert not any(owner["name"].startswith("state:")
                       and owner["live_bytes"] for owner in report["owners"]), "it was forgotten"
