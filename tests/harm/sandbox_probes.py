"""memstow does not take a process for one in a sandbox if the process only probes for sandboxes, if a sandbox is
refused to it, or if only its vfork child enters a sandbox. The ledger grows, the control thread is there, and a
forked child has a ledger of its own. If the process really enters a sandbox afterwards, it lives as long as without
us."""
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
