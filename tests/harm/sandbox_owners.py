"""A program in a sandbox that owns memory there, under an owner from before or a new one, lives as long as without us."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_owners.c"), flags=("-O1", "-g", "-w", "-ldl", "-fno-builtin"))
for when in ("before", "after"):
    for mode in ([], ["--stacks=none"], ["--allocator=mimalloc"]):
        alone = support.run(program, when, status=None)
        if alone.returncode == 77:
            support.skip("no sandbox here")
        assert alone.returncode == 5, alone
        tracked = support.memstow("run", "--quiet", "-o", "x.mst", *mode, "--", program, when, status=None)
        assert tracked.returncode == 5, f"{when} {mode}: {tracked}"
        owner = support.report("x.mst")["owners"][0]
        assert owner["live_bytes"] == (2 if when == "before" else 1) * (100 + (1 << 20)), f"{when} {mode}: {owner}"
