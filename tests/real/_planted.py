"""Checks that a report says where planted blocks came from: from which C++ functions, and from which Python lines
further out."""
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
    """Returns the first element of `chain` that `stack` lacks, or None if it has all of them. The stack must have the
    elements in the order of the chain, but other frames may lie between them. Elements may contain wildcards."""
    rest = iter(stack)
    return next((pattern for pattern in chain if not any(fnmatch.fnmatchcase(name, pattern) for name in rest)), None)


def check_planted(sites, size, chain, blocks=1):
    """Asserts that `blocks` live blocks of `size` bytes were allocated by stacks that contain the chain, innermost
    first."""
    found = {tuple(map(names, site["stack"])): site["live_blocks"] for site in sites
             if site["live_blocks"] and site["live_bytes"] == size * site["live_blocks"]}
    right = [count for stack, count in found.items() if not missing(stack, chain)]
    others = "\n\n".join(f"without {missing(stack, chain)}\n" + "\n".join(stack) for stack in found)
    assert sum(right) == blocks, f"{sum(right)} of {blocks} blocks of {size} bytes\n{others}"
