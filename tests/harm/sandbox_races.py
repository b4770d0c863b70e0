"""A thread tries again and again to enter a sandbox, and fails each time. This harms nobody. Another thread that enters
a real sandbox stays alive there. Forked children have ledgers. A signal handler that runs in the middle of a try does
not wait for its own thread. Invalid addresses are not read."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_races.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-ldl", "-fno-builtin"))
for way, times in (("enters", 3), ("forks", 1), ("handler", 1), ("blocks", 3)):
    alone = support.run(program, way, status=None, timeout=60)
    if alone.returncode == 77:
        support.skip("no sandbox here")
    assert alone.returncode == 5, (way, alone)
    for _ in range(times):
        options = ["--stacks=none"] if way == "forks" else [] # function names for a hundred reports would take long
        tracked = support.track(program, way, status=None, timeout=60, options=options)
        assert tracked.returncode == 5, (way, tracked)
        ledgers = list(support.HERE.glob("out.mst*"))
        assert len(ledgers) == (101 if way == "forks" else 1), (way, len(ledgers))
        report = support.report()
        assert way == "enters" or not report["lost"]["file"], (way, report["lost"]) # in a sandbox no file grows
        if way == "forks":
            assert all(support.report(file)["totals"]["host"]["allocated_bytes"] >= 100000
                       for file in ledgers if file.name != "out.mst")
        for file in ledgers:
            file.unlink()
