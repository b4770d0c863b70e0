"""Shared by the tests with churn.c: its truth file, and how far a report may differ from it."""
import pathlib, struct

import support

HERE = pathlib.Path(__file__).resolve().parent
THREADS, PROCESSES, TALLY = 16, 64, 16
WORDS = 16 + THREADS * TALLY
FIELDS = ("heap_bytes heap_blocks mapped_bytes mapped_blocks heap_flight heap_flight_blocks mapped_flight "
          "mapped_flight_blocks operations inherited_freed").split()


def program():
    return support.compile(HERE / "churn.c", flags=("-O1", "-g", "-pthread", "-w", "-fno-builtin-malloc"))


def read(path):
    """Returns a dictionary for each process that has begun, with sums over the process's threads."""
    words = struct.unpack(f"{PROCESSES * WORDS}q", pathlib.Path(path).read_bytes()[:PROCESSES * WORDS * 8])
    found = []
    for at in range(0, len(words), WORDS):
        pid, inherited = words[at:at + 2]
        if not pid:
            continue
        tallies = [words[i:i + TALLY] for i in range(at + 16, at + WORDS, TALLY)]
        truth = {name: sum(t[i] for t in tallies) for i, name in enumerate(FIELDS)}
        found.append({"pid": pid, "inherited": inherited, **truth})
    return found


def held(report, program):
    """The memory of the program itself, by its report: (heap bytes, heap blocks, mapped bytes, mapped blocks)."""
    module = [m for m in report["modules"] if m["module"] == str(program)]
    mapped = report["totals"]["mapped"]
    total = (module[0]["live_bytes"], module[0]["live_blocks"]) if module else (0, 0)
    return (total[0] - mapped["live_bytes"], total[1] - mapped["live_blocks"], mapped["live_bytes"],
            mapped["live_blocks"])


def compare(report, program, truth):
    """The faults of the report: one text for each figure that differs from the truth by more than the operations in
    flight."""
    wrong = []
    for found, name in zip(held(report, program), ("heap_bytes", "heap_blocks", "mapped_bytes", "mapped_blocks")):
        flight = name.replace("_bytes", "_flight").replace("blocks", "flight_blocks")
        if abs(found - truth[name]) > truth[flight]:
            wrong.append(f"{name}: report {found}, truth {truth[name]}, in flight {truth[flight]}")
    return wrong
