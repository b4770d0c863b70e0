"""Checks where a report says that planted blocks came from: C++ functions, and further out lines of Python."""
import fnmatch, pathlib

import support


def line_of(source, text):
    """(file, line) of the only line with the text."""
    found = [number for number, line in enumerate(pathlib.Path(source).read_text().split("\n"), 1) if text in line]
    assert len(found) == 1, (source, text, found)
    return str(source), found[0]


def largest(subject, most=60):
    """The sites of a report that hold most."""
    return support.report(subject, f"--top={most}")["sites"]


def names(frame):
    """The name of a frame: a C++ function, or function and file:line of a Python frame."""
    if frame["kind"] == "native":
        return frame["function"] or "?"
    return f"py {frame['function']} {frame['file']}:{frame['line']}"


def missing(stack, chain):
    """The first element of `chain` that `stack` lacks in the order of the chain; None if it has all. Other frames may
    lie between the elements. Elements may contain wildcards."""
    rest = iter(stack)
    return next((pattern for pattern in chain if not any(fnmatch.fnmatchcase(name, pattern) for name in rest)), None)


def check_planted(sites, size, chain, blocks=1):
    """Asserts that this many live blocks of that size were allocated by this chain, innermost first."""
    found = {tuple(map(names, site["stack"])): site["live_blocks"] for site in sites
             if site["live_blocks"] and site["live_bytes"] == size * site["live_blocks"]}
    right = [count for stack, count in found.items() if not missing(stack, chain)]
    others = "\n\n".join(f"without {missing(stack, chain)}\n" + "\n".join(stack) for stack in found)
    assert sum(right) == blocks, f"{sum(right)} of {blocks} blocks of {size} bytes\n{others}"
