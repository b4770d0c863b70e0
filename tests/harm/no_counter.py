"""A thread that may not read the processor's counter allocates as without memstow. memstow wants the time of a block
that raises the peak, and of a block that is large enough for a record of its own. libc's clock would read the counter
for this, so memstow does not use libc's clock there. In the strictest sandbox memstow asks the kernel for nothing, not
even for memory for a new call stack. If the kernel refuses a sandbox to the program, nothing changes."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("no_counter.c"), flags=("-O1", "-g", "-pthread"))
MODES = [(), ("--stacks=none",), ("--stacks=sample:4K",)]
if support.features()["mimalloc"]:
    MODES.append(("--allocator=mimalloc",))
for how in ("strict", "failing", "filtered", "library", "number", "beside"):
    for size in ("100", "3000", "100000"):
        alone = support.run(program, how, size, status=None)
        if alone.returncode == 77:
            support.skip(f"not possible here: {how}")
        assert (alone.returncode, alone.stdout) == (3, "end\n"), (how, size, alone)
        for number, options in enumerate(MODES):
            if how == "strict" and "--allocator=mimalloc" in options and size != "100":
                continue # mimalloc asks the kernel for memory, which kills
            file = f"{how}-{size}-{number}.mst"
            done = support.track(program, how, size, options=options, status=None, file=file)
            assert (done.returncode, done.stdout) == (3, "end\n"), (how, size, options, done)
            totals = support.report(file)["totals"]["host"]
            most = 60 * int(size) * (3 if how == "strict" else 32)
            if size == "100000": # small blocks are added up later
                assert most <= totals["peak_bytes"] <= most + 200_000, (how, size, options, totals)
