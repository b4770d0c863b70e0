# needs: root
# timeout: 200
# alone
"""What is stowed is given back: the control group's memory falls by at least 95 % of it, and RSS does."""
import os, pathlib

import _moving, support

HIERARCHIES = (("/sys/fs/cgroup/memory", "memory.usage_in_bytes"), ("/sys/fs/cgroup", "memory.current"))


def make_group():
    for parent, file in HIERARCHIES:
        group = pathlib.Path(parent) / f"memstow-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / file).exists():
            return group, file
        group.rmdir()
    support.skip("cannot make a control group with the memory controller")


group, file = make_group()
folder = _moving.real_disk()
try:
    status, output = _moving.execute([_moving.program("given_back"), group / file], folder,
                                     preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())))
finally:
    support.wait_for(lambda: not (group / "cgroup.procs").read_text(), what="the end of the group")
    group.rmdir()
assert status == 0, f"exit status {status}\n{output}"
for line in output.split("\n")[:2]:
    charged, resident = (int(word) for word in line.split())
    assert charged >= 243 and resident >= 243, output
print(output)
folder.rmdir()
