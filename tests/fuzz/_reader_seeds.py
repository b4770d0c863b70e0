"""Seeds for the reader: a finished ledger, a snapshot of a running program, and ledgers with call stacks, all and sampled,
and with a trace of decisions."""
import os, pathlib, struct, subprocess, sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import _decisions
from _ledger import Ledger

MEMSTOW = os.environ["MEMSTOW"]
PROGRAM = [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(60)"]

running = subprocess.Popen([MEMSTOW, "run", "--quiet", "-o", "ledger", "--", *PROGRAM], stdout=subprocess.PIPE)
running.stdout.readline()
children = open(f"/proc/{running.pid}/task/{running.pid}/children").read().split()
pid = int(children[0]) if children else running.pid
subprocess.run([MEMSTOW, "snapshot", str(pid), "-o", "snapshot"], check=True, stdout=subprocess.DEVNULL)
os.kill(pid, 15)
running.wait()

stacks = Ledger()
module = stacks.module("/opt/program", bias=0x10000, build_id=bytes(range(20)))
main, inner = stacks.frame(0x11010, module), stacks.frame(0x11020, module, interrupted=True)
outer = stacks.node([main, stacks.python("load", "/opt/load.py", 7)])
for number, node in enumerate([outer, stacks.node([inner], outer), stacks.node([main, inner])]):
    stacks.count(stacks.site(module, stack=node), alloc=(100 + number, 1))
stacks.save("stacks.ledger")
stacks.header["sample_bytes"] = 4096
stacks.save("sampled.ledger")

decisions = _decisions.clean()
decisions.save("decisions.ledger")
ring = decisions.trace()
decisions.trace = lambda: struct.pack("<QQQQ", len(ring) - 32, 8 * 5, 8 * 5 + len(ring) - 32, 99) + ring[-8 * 5:] + ring[32:-8 * 5]
decisions.save("round.ledger")
