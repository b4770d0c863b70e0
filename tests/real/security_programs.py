#!/usr/bin/env python3
# needs: cc mimalloc-bench
# timeout: 600
"""Each security program of mimalloc-bench misuses a block in one way. Under memstow it ends with the same signal or
status as without memstow, with the same output, and with glibc's own message. DIFFERS has the exceptions;
docs/misuse.md explains them. MIMALLOC_BENCH=DIR takes another checkout, which may have another number of programs."""
import concurrent.futures, os, pathlib, re, signal

import support

PROGRAMS = 116 # of the commit in cmake/setup.sh: 37 sources in C, each in three sizes, and 5 in C++
FOLDER = pathlib.Path(os.environ.get("MIMALLOC_BENCH", support.ROOT / "build/deps/mimalloc-bench")) / "bench/security"
if not FOLDER.is_dir():
    support.skip("mimalloc-bench is not installed: git could not fetch it")

FLAGS = ["-O3", "-w", "-fno-inline", "-fno-builtin-inline", "-fno-inline-small-functions", "-fno-ipa-pure-const"]
SIZES = {"small": "8", "medium": "4096", "large": "256*1024"}
SEGV, ABORT = -signal.SIGSEGV, -signal.SIGABRT
# The programs that end differently under memstow. For each of them: how it ends alone, and how it ends under memstow.
# An end is the status, the output, and standard error without memstow's own lines.
DIFFERS = {"invalid_array_delete_string": ((ABORT, "", "free(): invalid pointer\n"),
                                           (ABORT, "", "munmap_chunk(): invalid pointer\n")),
           **dict.fromkeys(["one_byte_underflow_small", "one_byte_underflow_medium"],
                           ((ABORT, "", "double free or corruption (out)\n"),
                            (ABORT, "", "free(): invalid pointer\n"))),}
TOLD = {"one_byte_underflow_small", "one_byte_underflow_medium", "one_byte_underflow_large"}
# These programs write a megabyte away from a block, and end by SIGSEGV if nothing is mapped at that place. Whether
# something is mapped there depends on where the loader puts things. So these programs are tried up to three times.
FAR = re.compile(r"one_mbyte_\w+_large")


def compile_one(source, size):
    name = f"{source.stem}_{size}" if size else source.stem
    cpp = source.suffix == ".cc"
    flags = ["-std=c++17", "-fsized-deallocation", "-O3", "-w", "-DALLOCATION_SIZE=4096"] if cpp else [
        *FLAGS, f"-DALLOCATION_SIZE={SIZES[size]}"]
    support.run("g++" if cpp else "gcc", *flags, "-o", name, source)
    return name


def outcome(*argv):
    ran = support.run(*argv, status=None)
    status = 128 - ran.returncode if ran.returncode > 128 else ran.returncode
    ours = [line for line in ran.stderr.splitlines() if line.startswith("memstow: ")]
    theirs = "".join(line + "\n" for line in ran.stderr.splitlines() if line not in ours)
    return (status, ran.stdout, theirs), ours


def compare(name):
    """Returns a text about the difference between the program's outcomes alone and tracked, or None if there is no
    difference."""
    for attempt in range(3 if FAR.fullmatch(name) else 1):
        (alone, _), (tracked, ours) = outcome(f"./{name}"), outcome(
            support.MEMSTOW, "run", "--quiet", "-o", f"{name}.mst", "--", f"./{name}")
        ends = (alone, tracked) == DIFFERS.get(name, (alone, alone))
        if ends:
            break
    twice = name.startswith("double_free_") and alone[0] in (ABORT, SEGV)
    told = "block freed twice: " if twice else "header of a block overwritten: " if name in TOLD else None
    said = len(ours) == 1 and told in ours[0] and f"{name}+0x" in ours[0] if told else not ours
    return None if ends and said else f"{name}: alone {alone}, with memstow {tracked}, which says {ours}"


sources = [(source, size) for source in sorted(FOLDER.glob("*.c")) for size in SIZES] + [
    (source, None) for source in sorted(FOLDER.glob("*.cc"))]
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    names = list(threads.map(lambda one: compile_one(*one), sources))
    wrong = [text for text in threads.map(compare, names) if text]
print(f"{len(names)} programs, {len(wrong)} end in a way of their own")
assert len(names) == PROGRAMS or "MIMALLOC_BENCH" in os.environ, f"{len(names)} programs, not {PROGRAMS}"
assert not wrong, "\n".join(wrong)
