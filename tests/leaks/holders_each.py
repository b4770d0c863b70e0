# timeout: 200
"""One node's memory with two holders. What the first holder keeps grows at one call stack. What the second holder keeps
comes from another line in each run: no call stack grows, only the owner as a whole. Both holders are named, each with
its own memory."""
import pathlib

import support
from _leaks import brief, leaks, waiting

RUNS, LARGE, SMALL = 14, 90_000, 40_000

for name in ("keep_large", "keep_small"):
    pathlib.Path(f"{name}.py").write_text("kept = []\ndef keep(thing):\n    kept.append(thing)\n")
program = waiting(f"""
import keep_large, keep_small, memstow
def make_large():
    return bytearray({LARGE})
def make_small(run): # at a line of its own
    names = {{}}
    exec(compile("\\n" * run + "made = bytearray({SMALL})", "made.py", "exec"), names)
    return names["made"]
node = memstow.owner("Maker", "node", "node 1", keys=(1, 1))
for run in range({RUNS}):
    with memstow.run(f"run {{run}}"), memstow.scope(node):
        keep_large.keep(make_large())
        keep_small.keep(make_small(run))
""")
document = leaks(program.pid(), "--holders", status=1)
held = {leak["held_by"]: leak["bytes_per_run"] for leak in document["leaks"]}
assert held.keys() == {"keep_large", "keep_small"}, brief(document)
assert abs(held["keep_large"] - LARGE) < 3000 and abs(held["keep_small"] - SMALL) < 3000, held
text = support.memstow("leaks", program.pid(), status=1).stdout
assert "held by keep_large.kept[" in text and "held by keep_small.kept[" in text, text
program.end()
