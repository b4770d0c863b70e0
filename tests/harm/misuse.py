#!/usr/bin/env python3
# needs: cc stacks deb:libjemalloc2
# timeout: 300
"""If a program frees a block twice, overwrites a block's header, or frees a pointer to no block, the program ends as it
does without memstow, with glibc's own message. If a block is freed twice or its header is overwritten, memstow prints
a line with what is known of the block. The report shows where the block was allocated, where it was freed first, and
where it was freed again. Most cases run once here. misuse_long runs each case three times, because each process has
other addresses."""
import os, pathlib, re, signal, subprocess

import support

program = support.compile(pathlib.Path(__file__).with_name("misuse.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-fno-builtin", "-fno-optimize-sibling-calls"))
ABORTED = -signal.SIGABRT
TIMES = int(os.environ.get("TIMES", "1"))


def run(which, mode, options=()):
    """Returns four things: status and standard error without memstow; status, standard error and output with memstow;
    memstow's own lines; the misuses in the report."""
    arguments = [program, which, mode]
    alone = support.run(*arguments, status=None)
    support.HERE.joinpath("out.mst").unlink(missing_ok=True)
    tracked = support.memstow("run", "--quiet", "-o", "out.mst", *options, "--", *arguments, status=None)
    lines = tracked.stderr.splitlines()
    ours = [line for line in lines if line.startswith("memstow: ")]
    rest = [line for line in lines if line not in ours]
    status = 128 - tracked.returncode if tracked.returncode > 128 else tracked.returncode
    files = [f for f in sorted(support.HERE.glob("out.mst*")) if f.name == "out.mst" or "child" in which]
    misuses = [misuse for file in files for misuse in support.report(file.name)["misuses"]]
    for file in files[1:]:
        file.unlink()
    return (alone.returncode,
            alone.stderr), (status, "\n".join(rest + [""] * bool(rest)), tracked.stdout), ours, misuses


def function(place):
    return place and place["stack"][0]["function"]


def check(which, mode="", times=TIMES, message=True, **wanted):
    """Asserts that the program ends as without memstow: with the same status, and with a message of glibc's if there is
    one without memstow. With message=True the two messages must be the same."""
    for _ in range(times):
        alone, tracked, ours, misuses = run(which, mode)
        told = f"{which}: alone {alone}, tracked {tracked}, {ours}, {misuses}"
        assert tracked[0] == alone[0], told
        assert tracked[1] == alone[1] if message else bool(tracked[1]) == bool(alone[1]), told
        assert len(ours) == len(misuses) == (1 if wanted else 0), told
        for misuse in misuses:
            seen = {key: function(misuse[key]) if key in ("allocated", "freed_first", "now") else misuse[key]
                    for key in wanted}
            assert seen == wanted, told
            assert f"{misuse['address']:#x}" in ours[0] and "misuse+0x" in ours[0], told
    return ours


# Blocks that are freed twice. At the second free, glibc has the blocks of these cases in different lists. If the list
# is a thread's cache, the size of the block is not known.
cached = {"kind": "double_free", "call": "free", "size_bytes": None, "allocated": "make", "freed_first": "drop",
          "now": "drop_again"}
check("tiny", **cached)
check("nothing", **cached)
check("small", times=10, **cached)
check("calloc", **cached | {"allocated": "freed_twice"})
check("medium", **cached | {"size_bytes": 5000})
check("joined", **cached | {"size_bytes": 3000})
check("fast", **cached | {"size_bytes": 100})
check("binned", **cached)
check("between", **cached)
check("aligned", message=False, **cached | {"size_bytes": 100, "allocated": "freed_twice"})
check("page", **cached | {"size_bytes": 5000, "allocated": "freed_twice"})
check("large", **cached | {"size_bytes": 300000})
check("thread", **cached)
# A large block is a mapping of its own. The first free unmaps it, so the program crashes when the second free reads the
# block's header.
mapped = cached | {"size_bytes": 300000}
check("mapped", **mapped)
check("mapped calloc", **mapped | {"allocated": "freed_twice"})
for which in ("mapped, aligned a little", "mapped, aligned", "mapped, on a page"):
    check(which, **mapped | {"allocated": "freed_twice"})
check("mapped, another there", **mapped)
check("mapped, a model's", **mapped)
check("mapped, resized", **mapped | {"freed_first": "resize"})
check("mapped again", **mapped | {"call": "realloc", "now": "resize"})
check("mapped again, aligned", **mapped | {"allocated": "used_again", "call": "realloc", "now": "resize"})
check("mapped child", **mapped | {"allocated": None})
check("child", **cached | {"allocated": None, "freed_first": None}) # the parent's ledger has the record
# A realloc that moves a block frees its old place. If the old place is freed again, memstow does not know which call
# freed it first.
check("resized", **cached | {"allocated": None, "freed_first": None})
check("resized again", message=False, **cached | {"call": "realloc", "now": "resize"})
check("aligned, resized again", message=False,
      **cached | {"size_bytes": 1000, "allocated": "used_again", "call": "realloc", "now": "resize"})
_, (status, _, out), _, _ = run("asked its size", "")
assert (status, out) == (0, "as large as it was\nsurvived\n")

# glibc stores a block's size in the 8 bytes in front of the block, and notices if the size is overwritten. Here glibc
# does not use the 8 bytes in front of the size, so overwriting only these bytes is harmless.
front = {"kind": "damaged_header", "call": "free", "size_bytes": 100, "harmless": False, "allocated": "make",
         "freed_first": None, "now": "drop"}
for which in ("one byte", "eight bytes"):
    assert "header of a block overwritten: " in check(which, "front", times=5, message=False, **front)[0]
check("sixteen bytes", "front", times=5, message=False, **front | {"size_bytes": None, "allocated": None})
check("resized spoilt", "front", message=False, **front | {"call": "realloc", "now": "resize"})
harmless = front | {"harmless": True}
check("before", "front", **harmless)
check("before too", "front", **harmless)
check("all before", "front", **harmless | {"allocated": None})
check("resized before", "front", **harmless | {"call": "realloc", "now": "resize"})
check("spoilt large", "front", **harmless | {"call": "none", "size_bytes": 300000, "now": None})
_, (status, _, out), _, _ = run("asked spoilt", "front") # its size is not taken from the damaged word
assert (status, out) == (0, "as large as it is\nsurvived\n"), (status, out)
# If glibc made a mapping for a large block, glibc's header is at the start of the mapping. memstow has nothing in front
# of this header, so a write there has the same effect as without memstow.
for which in ("malloc", "calloc", "grown", "moved"):
    check(f"{which}-17-1-free", "large")
    check(f"{which}-32-32-keep", "large")
large = front | {"size_bytes": 300000, "allocated": "made_large"}
made = {"malloc": "make", "grown": "resize", "moved": "resize"}
for which in ("malloc", "calloc", "grown", "moved", "256", "4096"):
    there = large | {"allocated": made.get(which, "made_large")}
    check(f"{which}-1-1-free", "large", **there) # glibc does not notice it
    check(f"{which}-1-1-keep", "large", **there | {"call": "none", "harmless": True, "now": None})
    for n, count in ((8, 1), (8, 8), (16, 1), (16, 16)):
        check(f"{which}-{n}-{count}-free", "large", times=1, **there)
        check(f"{which}-{n}-{count}-thread", "large", times=1, **there)
for which in ("malloc", "calloc", "grown", "moved"):
    there = large | {"allocated": made.get(which, "made_large"), "call": "realloc", "now": "resize"}
    for end in ("resize", "shrink"):
        check(f"{which}-8-1-{end}", "large", times=1, **there)
        check(f"{which}-16-16-{end}", "large", times=1, **there)
# memstow's header lies directly in front of the block if the block has a small alignment or is in the heap.
for which in ("32", "64"):
    for n, count in ((8, 1), (16, 1), (16, 16), (32, 32)):
        check(f"{which}-{n}-{count}-free", "large", message=False, **large)
    check(f"{which}-1-1-free", "large", **large | {"harmless": True}) # the kernel refuses such a size
for n in (1, 4, 6, 8):
    check(f"heap-{n}-1-free", "large", message=False, **large | {"allocated": "make"})

# If a byte of the size is changed, the block is not taken for a large one, and the next block is unharmed.
small = front | {"size_bytes": 20}
check("byte-3-41-free", "small", message=False, times=1, **small)
for n, change in (6, "41"), (7, "a6"):
    check(f"byte-{n}-{change}-resize", "small", message=False, times=1, **small | {"call": "realloc", "now": "resize"})
# A small number overwrites the lower half of the size. memstow does not take this number for the size.
for size, value in ((8, 0), (8, 7), (20, 1), (24, 0), (24, 10), (40, 10), (1050, 1034), (1050, 1051)):
    check(f"int-{size}-{value}", "small", message=False, times=1, **small | {"size_bytes": size})
# If a byte of the site or seal is changed, the header is not taken for the header of another kind of block, such as an
# aligned block or a mapping.
alone, tracked, ours, misuses = run("each byte", "small")
assert tracked[:2] == alone == (0, "") and len(ours) == 8, (alone, tracked, ours)
assert [(m["size_bytes"], m["harmless"], m["call"]) for m in misuses] == [(20, True, "free"),
                                                                         (20, True, "realloc")] * 12, misuses
assert {function(m["allocated"]) for m in misuses} <= {"make", None}, misuses # two numbers of sites, and one is wrong

# If a program writes zeros just in front of a block, for example because a text was too long, the header does not
# change.
check("end of text", "front")
check("int of zero", "front")

# If a freed block was large, memstow asks the kernel what lies at the block's address now. Some containers forbid the
# system call that memstow uses for this. In such a container, memstow uses a pipe instead.
check("reused")
refuse = support.compile(pathlib.Path(__file__).with_name("_refuse.c"))
tracked = support.run(refuse, support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program, "reused")
assert (tracked.stdout, tracked.stderr) == ("survived\n", ""), tracked
assert support.report()["misuses"] == []

# If the size in front of an aligned block is damaged, the block is left to glibc, which aborts here. With other flags
# in the damaged size, glibc might read an invalid address instead.
assert run("byte-3-3c-aligned", "small")[1][0] == ABORTED

# If the program frees or resizes a pointer that is not the start of a block, memstow passes the pointer on to glibc.
# memstow does the same with a pointer to the raw block that glibc gave out. The raw block begins in front of the
# program's block.
for which in ("stack", "static", "inside", "odd", "odd by eight", "in front", "in front, resized", "in front, aligned"):
    check(which, "none", message=False)

# The report in text has the three places.
run("medium", "")
places = "".join(rf"    {what}\n +{where}  misuse\.c:\d+\n(?: {{6,}}.*\n)*"
                 for what, where in (("allocated", "make"), ("freed first", "drop"), ("freed again", "drop_again")))
text = support.memstow("report", "out.mst").stdout
assert re.search(r"\nMisused blocks\n  5,000 bytes at 0x[0-9a-f]+: freed twice\n" + places, text), text

# Without call stacks memstow's line says what happened, but not where. If a block of memstow's built-in mimalloc is
# freed twice, memstow notices this, although mimalloc would not complain.
alone, tracked, ours, misuses = run("small", "", ["--stacks=none"])
assert tracked[:2] == alone and alone[0] == ABORTED and len(ours) == 1, (alone, tracked, ours)
assert [m["allocated"] for m in misuses] == [None], misuses
if support.features()["mimalloc"]:
    for which in ("tiny", "small", "medium"):
        _, tracked, ours, misuses = run(which, "", ["--allocator=mimalloc"])
        assert tracked[0] == ABORTED and "invalid pointer" in tracked[1], tracked
        assert [m["kind"] for m in misuses] == ["double_free"] and function(misuses[0]["now"]) == "drop_again", misuses

# If the program has another allocator and frees a block twice, that allocator gets the pointer that it gave out.
# jemalloc does not complain about the second free.
if not support.features()["sanitize"]: # the command itself would start over jemalloc
    jemalloc = {**os.environ, "LD_PRELOAD": "libjemalloc.so.2"}
    alone = support.run(program, "small", env=jemalloc)
    tracked = support.track(program, "small", file="jemalloc.mst", env=jemalloc)
    assert tracked.stdout == alone.stdout == "survived\n", tracked
    assert tracked.stderr.startswith("memstow: block freed twice: "), tracked
    twice, = support.report("jemalloc.mst")["misuses"]
    assert (function(twice["allocated"]), function(twice["freed_first"]),
            function(twice["now"])) == ("make", "drop", "drop_again"), twice

# While the process goes on, its report and a snapshot of it say the same.
waits = support.start(support.MEMSTOW, "run", "--quiet", "-o", "waits.mst", "--", program, "before", "front", "wait",
                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
pid = int(waits.stdout.readline())
told = support.memstow("report", pid).stdout
support.memstow("snapshot", pid, "-o", "snapshot.mst")
for text in (told, support.memstow("report", "snapshot.mst").stdout):
    assert re.search(
        r"\nMisused blocks\n  100 bytes at 0x[0-9a-f]+: its header was overwritten; found when it was freed\n",
        text), text
    assert re.search(r"\n    allocated\n +make  misuse.c:\d+\n.*\n    freed\n +drop  misuse.c:\d+\n", text, re.S), text
live, kept = support.report(pid)["misuses"], support.report("snapshot.mst")["misuses"]
assert live == kept and len(kept) == 1, (live, kept)
waits.kill()
