"""Seeds for the reader: a finished ledger, and a snapshot of a running program."""
import os, subprocess, sys

MEMSTOW = os.environ["MEMSTOW"]
PROGRAM = [sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(60)"]

running = subprocess.Popen([MEMSTOW, "run", "--quiet", "-o", "ledger", "--", *PROGRAM], stdout=subprocess.PIPE)
running.stdout.readline()
children = open(f"/proc/{running.pid}/task/{running.pid}/children").read().split()
pid = int(children[0]) if children else running.pid
subprocess.run([MEMSTOW, "snapshot", str(pid), "-o", "snapshot"], check=True, stdout=subprocess.DEVNULL)
os.kill(pid, 15)
running.wait()
