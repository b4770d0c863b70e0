# needs: root
"""A process may get the PID of an earlier tracked process. The commands that take a PID do not mistake the new process
for the earlier one. Nor does the report of the earlier process's ledger."""
import os, pathlib, subprocess, sys

import support

PID = 5000


def inside():
    """Runs in a PID namespace of its own, where the next PID can be set."""
    def start(*argv):
        pathlib.Path("/proc/sys/kernel/ns_last_pid").write_text(str(PID - 1))
        process = support.start(*argv, stdin=subprocess.PIPE)
        assert process.pid == PID, process.pid
        return process

    first = start(support.MEMSTOW, "run", "--exec", "-o", "first.mst", "--", "cat")
    support.wait_for(lambda: "first.mst" in support.memstow("ps").stdout, what="its ledger")
    first.kill()
    first.wait()
    second = start("cat")
    for words in (("report",), ("snapshot",), ("owners",), ("stow", "model"), ("metrics",)):
        done = support.memstow(words[0], PID, *words[1:], status=3)
        assert f"process {PID} is not tracked by memstow" in done.stderr, done
    assert "no process is tracked" in support.memstow("ps").stdout
    second.kill()
    second.wait()
    third = start(support.MEMSTOW, "run", "--exec", "-o", "third.mst", "--", "cat")
    support.wait_for(lambda: "third.mst" in support.memstow("ps").stdout, what="its ledger")
    assert support.report("first.mst")["process"]["state"] != "running"
    assert support.report(PID)["process"]["state"] == "running"
    third.kill()
    third.wait()


if sys.argv[1:] == ["inside"]:
    inside()
    sys.exit()
probe = 'echo 77 > /proc/sys/kernel/ns_last_pid'
if subprocess.run(["unshare", "-pf", "--mount-proc", "sh", "-c", probe], capture_output=True).returncode:
    support.skip("the next PID cannot be set here")
support.run("unshare", "-pf", "--mount-proc", sys.executable, __file__, "inside", env=os.environ)
