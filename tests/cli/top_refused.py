"""If memstow top cannot show anything, it prints one message, and its exit code says so."""
import os, signal, subprocess, sys

import _terminal
from _screen import Driven
from support import MEMSTOW, memstow, start

_terminal.need()
usage = memstow("top", "--help").stdout
assert "usage: memstow top [PID]" in usage
if "no ncurses" in memstow("--version").stdout:
    done = memstow("top", status=2)
    assert done.stderr == "memstow: top: this memstow was built without ncurses, which top needs\n", done.stderr
    sys.exit()

done = memstow("top", status=2, stdin=subprocess.DEVNULL)
assert done.stderr == "memstow: top: it needs a terminal\n" and not done.stdout, done
for words in (["x"], ["1", "2"], ["--nothing"]):
    assert "see 'memstow top --help'" in memstow("top", *words, status=2).stderr, words


def said(*words, status, lines=30, columns=120, **environment):
    """Runs `memstow top` on a terminal, where it must refuse to start. Returns its message."""
    top = Driven(MEMSTOW, "top", *words, lines=lines, columns=columns, **environment)
    top.finish(status)
    text = "".join(line.ljust(columns) for line in top.screen.text()).strip()
    assert text.startswith("memstow: ") and len(text) < 2 * columns, text
    return text


# ncurses never frees what it made for a terminal that it does not know: AddressSanitizer must not report this
for term in ("dumb", "", "no-such-terminal", None):
    assert "(TERM) cannot show it" in said(status=2, TERM=term, ASAN_OPTIONS="detect_leaks=0"), term
assert "has 120 columns and 11 lines, and at least 60 and 12" in said(status=2, lines=11)
assert "has 59 columns and 30 lines, and at least 60 and 12" in said(status=2, columns=59)
sleeper = start("sleep", "1000")
assert "is not tracked by memstow" in said(sleeper.pid, status=3)
assert "no such process" in said(2**22 + 1, status=3) # the kernel has no larger pid



def watched(file):
    """A program that has 50 MiB and writes the ledger `file`, and top that shows it."""
    program = "kept = bytearray(50 << 20); print('ready', flush=True); input()"
    process = start(MEMSTOW, "run", "--quiet", "-o", file, "--exec", "--", sys.executable, "-c", program,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    top = Driven(MEMSTOW, "top", process.pid)
    top.see(r"50\.0 MiB ")
    return process, top


# If a process is killed while top shows it, top still shows its last figures. If the terminal goes away (SIGHUP), top
# ends.
process, top = watched("x.mst")
process.kill()
process.wait()
top.see(r"ENDED: it ended unseen|ENDED: it was killed")
top.see(r"50\.0 MiB ")
os.kill(top.child.pid, signal.SIGHUP)
top.finish()

# The ledger's file is cut short while it is mapped: top cannot go on, and gives the terminal back.
process, top = watched("cut.mst")
os.truncate("cut.mst", 0)
top.finish(3)
text = "".join(line.ljust(top.screen.columns) for line in top.screen.text())
assert "memstow: the ledger shrank while it was read" in text, text
process.kill()
process.wait()
