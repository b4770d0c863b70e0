#!/usr/bin/env python3
"""No line of a source, script, document or man page is wider than 120 columns, not even inside a long string.
Exceptions: rows of tables in Markdown, which cannot be wrapped, and the files of EXEMPT, for the reason given there."""
import support

COLUMNS = 120
FOLDERS = (".github", "cmake", "cupti", "docs", "examples", "include", "preload", "tests", "tools")
SUFFIXES = (".S", ".c", ".cc", ".cmake", ".css", ".def", ".h", ".html", ".in", ".js", ".json", ".lua", ".map", ".md",
            ".1", ".proto", ".py", ".scenario", ".sh", ".sql", ".toml", ".txt", ".yaml", ".yml")
EXEMPT = {
    "tools/comfyui/example_workflows/start_branch.json": "a string of JSON has no line breaks",
    "tools/comfyui/locales": "a string of JSON has no line breaks",
}


def is_text(path):
    """Whether the file is text: by its suffix, or because it is a script."""
    if path.suffix or path.name == "LICENSE":
        return path.suffix in SUFFIXES
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def wide(path):
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if len(line) > COLUMNS and not (path.suffix == ".md" and line.startswith("|")):
            yield f"{path.relative_to(support.ROOT)}:{number}: {len(line)} columns"


inside = [path for folder in FOLDERS for path in (support.ROOT / folder).rglob("*")]
exempt = [support.ROOT / name for name in EXEMPT]
files = [path for path in [*support.ROOT.glob("*"), *inside]
         if path.is_file() and is_text(path) and not any(path.is_relative_to(one) for one in exempt)]
assert len(files) > 1400, "the sources were not found"
assert all(path.exists() for path in exempt), "an exemption of nothing"
faults = [fault for path in files for fault in wide(path)]
assert not faults, "\n".join(faults)
