"""stow, restore, release and trigger: a request that cannot be made gives one line, and an exit code that tells whose
fault it is."""
import os, sys

from support import MEMSTOW, memstow, start, wait_for

for verb, *owner in (("stow", "a"), ("restore", "a"), ("release", 1), ("trigger",)):
    done = memstow(verb, 999999999, *owner, status=3)
    assert done.stderr == "memstow: no such process: 999999999\n", done
    done = memstow(verb, os.getpid(), *owner, status=3)
    assert "is not tracked by memstow" in done.stderr and done.stderr.count("\n") == 1, done
process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", sys.executable, "-S", "-c",
                "import time; time.sleep(1000)")
children = f"/proc/{process.pid}/task/{process.pid}/children"
pid = int(wait_for(lambda: open(children).read().split() or None)[0])
wait_for(lambda: os.path.exists("x.mst"))
done = wait_for(lambda: (done := memstow("trigger", pid, status=3)) and "owner" in done.stderr and done)
assert done.stderr == f"memstow: process {pid} takes no requests: it has registered no owner yet\n", done
