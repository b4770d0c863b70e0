# needs: cc
# timeout: 300
"""Threads, coroutines, libraries, children, signals and exceptions come and go at random. There is not enough memory
for all their call stacks, so memstow removes stacks without live blocks all the time to store new ones. Live memory is
exact to the byte throughout. Each stack is the one that libunwind finds, or only the outer part of it if there was no
memory for the rest. tests/long real/churn_long does the same for ten minutes."""
import os, pathlib, shutil, struct, subprocess

import support

REAL = pathlib.Path(__file__).resolve().parent
MEMORY = 4_000_000 # bytes for stacks, which is too little for all of them
NOISE = 20_000 # memory that libraries keep after their first use


def build():
    """Builds the program and its libraries. Each library has a copy with the same layout, so that one may be loaded at
    the addresses where the other was."""
    support.run("c++", "-O1", "-g", "-fno-builtin-malloc", "-pthread", "-o", "churn", REAL / "_churn.cc", timeout=300)
    libraries = []
    for number in (1, 2, 3, 4):
        made = support.HERE / f"library_{number}.so"
        support.run("cc", "-O1", "-g", "-fPIC", "-shared", f"-DNUMBER={number}", "-o", made, REAL / "_churn_library.c")
        libraries += [made, shutil.copy(made, support.HERE / f"copy_{number}.so")]
    return [support.HERE / "churn"], libraries


def told(process, word):
    """The numbers in the line at which the program waits."""
    line = process.stdout.readline().split()
    assert line and line[0] == word, (word, line, process.stderr.read())
    return [int(n) for n in line[1:]]


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


def live(file):
    totals = support.report(file)["totals"]
    return totals["live_bytes"], totals["live_blocks"]


def check_ledger(program, libraries, seconds, children):
    environment = {**os.environ, "MEMSTOW_STACK_MEMORY": str(MEMORY)}
    argv = [support.MEMSTOW, "run", "--quiet", "-o", "churn.mst", "--", *program, seconds, children, *libraries]
    process = subprocess.Popen([str(a) for a in argv], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    told(process, "warm")
    warm = live("churn.mst")
    go_on(process)
    told(process, "quiet")
    quiet = live("churn.mst")
    go_on(process)
    wanted = told(process, "final")
    held = live("churn.mst")
    report = support.report("churn.mst")
    go_on(process)
    assert process.wait(60) == 0, process.stderr.read()
    print(f"live bytes and blocks: warm {warm}, quiet {quiet}, at the end {held}; lost: {report['lost']}")
    assert held == (quiet[0] + wanted[0], quiet[1] + wanted[1]), (quiet, wanted, held)
    assert abs(quiet[0] - warm[0]) < NOISE, (warm, quiet)
    assert report["lost"]["folded"] > 10_000, report["lost"]


def check_stacks(program, libraries, seconds):
    library, counts = support.BUILD / "libmemstow_oracle.so", support.HERE / "counts"
    if not library.exists():
        print("libunwind-dev is not installed: stacks are not compared")
        return
    counts.mkdir()
    environment = {**os.environ, "MEMSTOW_STACK_MEMORY": str(MEMORY), "LD_PRELOAD": str(library),
                   "MEMSTOW_ORACLE": str(counts), "MEMSTOW_OUT": str(support.HERE / "%n.%p.mst")}
    done = support.run(*program, seconds, 0, *libraries, env=environment, input="\n\n\n", timeout=seconds + 200)
    compared, wrong, short, left_out, outer = struct.unpack("<5Q", next(counts.iterdir()).read_bytes()[:40])
    print(f"{compared} stacks, {wrong} wrong, {short} short, {outer} the outer part for want of room")
    assert compared > 10_000, done.stderr # the number depends on the machine and its load
    assert wrong == short == 0, done.stderr


def main(seconds, children):
    program, libraries = build()
    check_ledger(program, libraries, seconds, children)
    check_stacks(program, libraries, seconds)


if __name__ == "__main__":
    main(6, 6)
