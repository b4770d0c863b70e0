"""Output that cannot be written is a failure; a closed pipe is a quiet one."""
import os, subprocess
from _ledger import simple
from support import MEMSTOW

simple().save("x.mst")
with open("/dev/full", "w") as full:
    done = subprocess.run([MEMSTOW, "report", "x.mst"], stdout=full, stderr=subprocess.PIPE, text=True)
assert (done.returncode, done.stderr) == (3, "memstow: the output could not be written: No space left on device\n"), done
for restore in (True, False):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([MEMSTOW, "report", "x.mst"], stdout=writer, stderr=subprocess.PIPE, restore_signals=restore)
    os.close(writer)
    assert done.returncode != 0 and done.stderr == b"", done
