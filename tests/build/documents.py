#!/usr/bin/env python3
"""Documents refer to things that exist: links lead to a file and a heading, and paths in `code` are in the repository.
Each decision has its four parts and is listed in docs/design.md. No line of prose has more than 120 columns."""
import re

import support

PAGES = sorted([*support.ROOT.glob("*.md"), *support.ROOT.glob("docs/**/*.md"), *support.ROOT.glob("tests/**/*.md"),
                *support.ROOT.glob("preload/*.md"), *support.ROOT.glob("tools/*.md")])
PARTS = ["Context", "Decision", "What was measured", "What would change it"]
PATH = re.compile(r"`((?:preload|tools|tests|include|cupti|cmake|docs|examples)/[\w./*-]*)`")
faults = []


def anchors(text):
    """The anchors that GitHub makes of the headings."""
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
            for heading in re.findall(r"^#+ (.*)$", text, re.M)}


def prose(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)


def exists(path):
    """Whether the file or folder exists. A test may be named without its suffix; a wildcard or NAME may stand for
    several files."""
    path = path.rstrip("/").replace("NAME", "*")
    return any(any(support.ROOT.glob(path + suffix)) for suffix in ("", ".py", ".c", ".cc"))


def check_links(page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = page.parent / name if name else page
        if not there.exists():
            faults.append(f"{page.name}: there is no {target}")
        elif anchor and anchor not in anchors(there.read_text()):
            faults.append(f"{page.name}: {name or 'it'} has no heading #{anchor}")


def check_decisions():
    design = (support.ROOT / "docs/design.md").read_text()
    decisions = sorted((support.ROOT / "docs/decisions").glob("*.md"))
    for number, path in enumerate(decisions, 1):
        text = path.read_text()
        title = re.match(rf"# {number}\. (.+)\n", text)
        if not title or not path.name.startswith(f"{number:04}-"):
            faults.append(f"{path.name}: is not decision {number}")
        elif f"- [{number}. {title[1]}](decisions/{path.name})\n" not in design:
            faults.append(f"{path.name}: docs/design.md does not list it by its title")
        if re.findall(r"^## (.*)$", text, re.M) != PARTS:
            faults.append(f"{path.name}: its parts are not {', '.join(PARTS)}")
        if text.count("\n") > 60:
            faults.append(f"{path.name}: has more than 60 lines")
    return len(decisions)


def check_width(page, text):
    """Checks lines of prose only: no tables, no examples, nothing that tests/bench/run writes."""
    text = re.sub(r"<!-- tests/bench/run begin -->.*?<!-- tests/bench/run end -->", "", text, flags=re.S)
    for line in text.split("\n"):
        if len(line) > 120 and not line.startswith(("|", "    ")):
            faults.append(f"{page.name}: more than 120 columns: {line[:60]}…")


paths = 0
for page in PAGES:
    text = prose(page.read_text())
    check_links(page, text)
    check_width(page, text)
    if page.name == "CHANGELOG.md":
        continue # it names files of the past
    for path in PATH.findall(text):
        paths += 1
        if not exists(path):
            faults.append(f"{page.name}: there is no {path}")
assert check_decisions() > 30 and paths > 50 and len(PAGES) > 30, "the documents were not found"
assert not faults, "\n".join(faults)
