"""watch waits for a process that forks and ends all the time, although a look at /proc may miss it."""
import subprocess, time

from _ends import faults
from support import MEMSTOW


def hop(*before):
    return subprocess.run([*before, MEMSTOW, "watch", "--quiet", "--stacks=none", "--follow=none", "--grace=60s",
                           "--strict", "--", faults(), "seconds=4", "hop"], stderr=subprocess.PIPE, text=True,
                          timeout=110)


begun = time.monotonic()
done = hop()
assert time.monotonic() - begun > 2.9, done # it hops for 3 to 4 seconds, and watch waits until its end
assert done.returncode == 0 and (not done.stderr or "memstow: nothing is left, " in done.stderr), done
# The shell starts sleep, and becomes memstow by exec. So memstow has a child that is none of the program's.
done = hop("sh", "-c", "sleep 30 >/dev/null 2>&1 & exec \"$@\"", "sh")
assert done.returncode == 0 and "sleep" not in done.stderr, done
