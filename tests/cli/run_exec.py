#!/usr/bin/env python3
"""memstow run --exec becomes the program. So its process id, its signals and its exit status are those of the program.
A ledger is written, but no summary. Wrong options are refused before the program starts."""
import json, pathlib, signal, subprocess

import support

done = support.memstow("run", "--exec", "-o", "out.mst", "--", "sh", "-c", "echo $$ $PPID; exit 7", status=7)
pid, parent = map(int, done.stdout.split())
assert not done.stderr, done.stderr
assert json.loads(support.memstow("report", "--json", "out.mst").stdout)["process"]["pid"] == pid
held = subprocess.Popen([support.MEMSTOW, "run", "--exec", "-o", "held.mst", "--", "sleep", "100"])
support.wait_for(lambda: b"sleep" in pathlib.Path(f"/proc/{held.pid}/cmdline").read_bytes()[:5], what="exec")
held.send_signal(signal.SIGTERM)
support.expect_exit(held, -signal.SIGTERM, seconds=60)
assert support.memstow("run", "--exec", "--", "no such program", status=127).stderr.count("\n") == 1
assert support.memstow("run", "--exec", "-o", "/no/folder/x", "--", "true", status=2).stderr.count("\n") == 1
