"""A program that leaks from run to run, and that keeps memory of a model that is gone."""
import os, sys

import support

PROGRAM = f"""
import gc, os, sys
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
import memstow
kept, model = [], memstow.owner("old model", origin="old.bin")
with memstow.scope(model):
    kept.append(bytearray(3_000_000))
node = memstow.owner("Leaky", kind="node")
def leaking(): kept.append(bytearray(100_000))
def tidy(): bytearray(500_000)
for number in range(14):
    if number == 2: model.retire()
    with memstow.run(f"run {{number}}"), memstow.scope(node):
        leaking()
        tidy()
    gc.collect()
os._exit(0)
"""


def record(file):
    """Runs the program under memstow, with its ledger in `file`."""
    support.track(sys.executable, "-c", PROGRAM, file=file, env={**os.environ, "PYTHONMALLOC": "malloc"})
