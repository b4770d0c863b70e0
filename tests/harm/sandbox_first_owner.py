"""A thread registers the program's first owner while another thread puts all threads into a sandbox. Either the thread
of the control socket ends before the sandbox begins, or memstow does not make this thread at all. If the call that
begins the sandbox fails, the process has its control socket in the end."""
import os, pathlib, subprocess

import support
from _control import connected, start_ticks

program = support.compile(pathlib.Path(__file__).with_name("sandbox_first_owner.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-rdynamic", "-ldl"))
runtime = pathlib.Path("run").resolve()
runtime.mkdir(mode=0o700)
env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
alone = support.run(program, 1, status=None, timeout=60)
if alone.returncode == 77:
    support.skip("no sandbox here")
assert alone.stdout == "0 killed\n", alone
tracked = support.track(program, 60, timeout=100, env=env, options=["--stacks=none"])
assert tracked.stdout == "0 killed\n", tracked

for _ in range(10):
    process = support.start(support.MEMSTOW, "run", "--quiet", "--stacks=none", "--exec", "--", program, "probe",
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout.readline() == "ready\n"
    path = runtime / "memstow" / f"{process.pid}.{start_ticks(process.pid)}"
    support.wait_for(lambda: connected(path), what="listening")
    process.stdin.close()
    support.expect_exit(process, seconds=20)
