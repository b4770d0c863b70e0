# timeout: 200
"""memstow top watches a program in which four threads allocate, and stacks are folded all the time. Afterwards its
figures are those of the report."""
import select, subprocess, sys

import _terminal
import support
from _screen import Driven
from support import MEMSTOW, memstow, report, start

_terminal.need()
if "no ncurses" in memstow("--version").stdout:
    support.skip("this memstow was built without ncurses")

PROGRAM = '''
import random, threading
def deep(n, path):
    if n == 0: return bytearray(3000 + path % 500)
    return eval("deep(n - 1, path)", {"deep": deep, "n": n, "path": path}) if path >> n & 1 else deep(n - 1, path)
kept = []
def work(seed):
    choose = random.Random(seed)
    for i in range(4000):
        block = deep(16, choose.randrange(1 << 17))
        if i % 50 == 0: kept.append(block)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
input()
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("done", flush=True)
input()
'''
process = start(MEMSTOW, "run", "--quiet", "--stack-memory=2M", "-o", "x.mst", "--exec", "--", sys.executable, "-c",
                PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
support.wait_for(lambda: memstow("report", process.pid, status=None).returncode == 0, what="the ledger")
top = Driven(MEMSTOW, "top", process.pid)
top.see("by site, live bytes")
process.stdin.write("\n")
process.stdin.flush()
top.wait(lambda _lines: select.select([process.stdout], [], [], 0)[0], "the end of the threads", seconds=100)
assert process.stdout.readline() == "done\n"
document = report(process.pid, "--top=5")
if not document["lost"]["folded"]:
    support.skip("nothing was folded here: there is no membarrier")
blocks = f"{document['totals']['live_blocks']:,}"
top.wait(lambda lines: f"blocks {blocks}  " in lines[1], f"blocks {blocks}")
most = max(site["live_bytes"] for site in document["sites"])
assert top.screen.text()[6].split()[0] == f"{most / 2**20:.1f}", top.screen.text()
top.press("q")
top.finish()
