"""A program goes into a sandbox and has memory of owners there: of an owner from before, or of a new one. It lives as
long as without memstow."""
import os, pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_owners.c"),
                          flags=("-O1", "-g", "-w", "-ldl", "-fno-builtin"))
os.environ["MEMSTOW_STOW_DIR"] = "/var/tmp"
SMALL, LARGE = 100, 1 << 20
for when, live in {"before": 2 * (SMALL + LARGE), "after": SMALL + LARGE, "stowed": 2 * SMALL + LARGE}.items():
    for mode in ([], ["--stacks=none"], ["--allocator=mimalloc"]):
        alone = support.run(program, when, status=None)
        if alone.returncode == 77:
            support.skip("no sandbox here")
        assert alone.returncode == 5, alone
        tracked = support.memstow("run", "--quiet", "-o", "x.mst", *mode, "--", program, when, status=None)
        assert tracked.returncode == 5, f"{when} {mode}: {tracked}"
        owner = support.report("x.mst")["owners"][0]
        assert owner["live_bytes"] == live, f"{when} {mode}: {owner}"
