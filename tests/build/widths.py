#!/usr/bin/env python3
"""No line of a source, a document or a man page is wider than 120 columns. Not judged: programs of other languages and
data in Python strings of several lines; tables, commands and output in Markdown."""
import io, tokenize

import support

COLUMNS = 120
FOLDERS = ("cupti", "docs", "examples", "include", "preload", "tests", "tools")
SUFFIXES = (".c", ".h", ".cc", ".py", ".js", ".css", ".md", ".1")


def in_strings(text):
    """The numbers of lines of a program in Python that lie in a string of several lines."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING and token.end[0] > token.start[0]:
            found.update(range(token.start[0], token.end[0] + 1))
    return found


def in_code(text):
    """The numbers of lines of a document that are a table, or shown as they are."""
    fenced, found = False, set()
    for number, line in enumerate(text.split("\n"), 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fenced or fence or line.startswith(("|", "    ")):
            found.add(number)
    return found


def wide(path):
    text = path.read_text()
    free = in_strings(text) if path.suffix == ".py" else in_code(text) if path.suffix == ".md" else ()
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS and number not in free:
            yield f"{path.relative_to(support.ROOT)}:{number}: {len(line)} columns"


files = [*support.ROOT.glob("*.md"), *(path for folder in FOLDERS for path in (support.ROOT / folder).rglob("*")
                                       if path.suffix in SUFFIXES and path.is_file())]
faults = [fault for path in files for fault in wide(path)]
assert len(files) > 900, "the sources were not found"
assert not faults, "\n".join(faults)
