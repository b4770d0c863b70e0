"""The resource tracker and the fork server of Python's multiprocessing end by themselves with the program, so they do
not count as left. A process that the fork server has started counts as left if it goes on."""
import os, pathlib

from support import MEMSTOW, PYTHON, ROOT, run

pathlib.Path("app.py").write_text(r"""
import multiprocessing, os, sys, time
import memstow_shutdown as shutdown

def start(method, seconds):
    child = multiprocessing.get_context(method).Process(target=time.sleep, args=(seconds,))
    child.start()
    return child

if __name__ == "__main__":
    left = None
    if sys.argv[1] in ("spawn", "forkserver"):
        start(sys.argv[1], 0).join()
    if sys.argv[1] == "shared":
        from multiprocessing import shared_memory
        memory = shared_memory.SharedMemory(create=True, size=4096)
        memory.close()
        memory.unlink()
    if sys.argv[1] == "left":
        left = start("forkserver", 60)
    result = shutdown.run("the test", goes_on=True)
    pids = [int(name.split("pid ")[1].rstrip(")")) for name in result.processes]
    print(result.clean, pids == ([left.pid] if left else []), flush=True)
    if left:
        left.kill()
        left.join()
""")
for tracked in (True, False):
    for case in ("spawn", "shared", "forkserver", "left"):
        before = [MEMSTOW, "run", "--quiet", "-o", "x.mst", "--"] if tracked else []
        done = run(*before, PYTHON, "app.py", case, env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
        assert done.stdout.split() == [str(case != "left"), "True"], (case, tracked, done.stdout, done.stderr)
print("helpers of multiprocessing are not left; what they have started is")
