"""If output cannot be written, the command fails. A closed pipe is a failure without a message."""
import os, subprocess
from _ledger import simple
from support import MEMSTOW

simple().save("x.mst")
ledger = simple()
for number in range(2000): # more than any buffer holds: it fails in the middle, not at the end
    ledger.count(ledger.site(ledger.module(f"/lib/{number}")), alloc=(64, 1))
ledger.save("large.mst")
for words in (("x.mst",), ("x.mst", "--json"), ("large.mst", "--json"), ("large.mst", "--top=2000"),
              ("large.mst", "--folded")):
    with open("/dev/full", "w") as full:
        done = subprocess.run([MEMSTOW, "report", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode,
            done.stderr) == (3, "memstow: the output could not be written: No space left on device\n"), done
for restore in (True, False):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([MEMSTOW, "report", "x.mst"], stdout=writer, stderr=subprocess.PIPE, restore_signals=restore)
    os.close(writer)
    assert done.returncode != 0 and done.stderr == b"", done
