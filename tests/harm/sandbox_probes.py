"""A process that only probes for a sandbox, or is refused one, is not in it: the ledger grows, the control thread is
there, and a forked child has a ledger of its own. A parent is not in the sandbox of its vfork child. A process that
then goes into a sandbox lives as long as without us."""
import os, pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_probes.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-ldl", "-fno-builtin"))
runtime = pathlib.Path("run").resolve()
runtime.mkdir(mode=0o700)
env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
for way in ("probe", "refused", "thread", "vfork"):
    for then in ([], ["then in"]):
        alone = support.run(program, way, *then, status=None, timeout=60)
        if alone.returncode == 77:
            support.skip("no sandbox here")
        assert alone.returncode == 5, alone
        tracked = support.track(program, way, *then, status=None, timeout=60, env=env)
        assert (tracked.returncode, tracked.stdout) == (5, alone.stdout), f"{way} {then}:\n{alone.stdout}\n{tracked}"
        report = support.report()
        assert (len(report["owners"]),
                report["process"]["state"]) == (3002, "abrupt_exit"), (way, len(report["owners"]), report["process"])
        assert not report["lost"]["file"], (way, report["lost"])
        (child,) = support.HERE.glob("out.mst.*")
        assert support.report(child)["totals"]["host"]["live_bytes"] >= 123456, way
        child.unlink()
        if then:
            assert report["totals"]["host"]["live_bytes"] >= 1000 * 70000, way
