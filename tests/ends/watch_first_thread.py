"""A process whose first thread has ended runs on in its other threads. watch shows and ends such a process. If the
program itself is such a process, watch waits for its end."""
import re

from _ends import faults, pids, watch
from support import is_gone

text, _ = watch(faults(), "first-ends", grace="1s", options=("--end", "--strict"), status=1)
assert re.search(r"ended, 1 process is still there\n  faults, pid \d+ ", text), text
assert re.search(r"2 threads\n +\d+ faults \(main thread\), since \S+ s: has ended\n +\d+ faults, since", text), text
head = re.search(r"pid \d+ .*\): (\S+ \S+), \S+ s old", text)
# its memory is shown, and its ledger is read
assert head and head[1] != "0 B" and "is not known" not in text and ".mst" not in text, text
assert re.search(r": has ended\n +\d+ faults, since \S+ s: .*\n +started .* ago:\n(.*\n)*? +thread  _faults\.c:",
                 text), text
assert "was gone" not in text and "ended on SIGTERM" in text, text
assert is_gone(pids(text)[0])
text, seconds = watch(faults(), "here", "first-ends", "seconds=2")
assert text == "" and seconds >= 2, (text, seconds)
