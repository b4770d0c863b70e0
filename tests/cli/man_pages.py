"""Help, man pages and commands agree. Each option of --help is accepted, and is in the man page. Each option of a page
is in --help. Both have the same exit statuses. Pages that are referred to exist."""
import re

from support import ROOT, memstow

DOCS = ROOT / "docs"
COMMANDS = re.findall(r"^  ([a-z]+)  +\S", memstow("--help").stdout, re.M)
assert len(COMMANDS) >= 16 and {"run", "check", "restore"} <= set(COMMANDS), COMMANDS


def page_of(command):
    text = (DOCS / f"memstow-{command}.1").read_text()
    assert text.startswith(".Dd ") and ".Sh NAME\n" in text, command # man -l shows it from the source tree, too
    return text


def options_of(page):
    """The options of a page: those in its synopsis, and those at the head of paragraphs."""
    synopsis = re.search(r"^\.Sh SYNOPSIS\n(.*?)^\.Sh", page, re.M | re.S)[1].split("\n")
    offered = synopsis + re.findall(r"^\.It\b.*$", page, re.M)
    return {f"--{name}" for line in offered for name in re.findall(r"(?:Fl|[,|]) -([a-z][a-z-]*)", line)}


def statuses(text):
    return set(re.findall(r"\b(\d{1,3})\b", re.sub(r"\b\d+ seconds|\d+(\.\d+)+", "", text)))


run = page_of("run")
for command in COMMANDS:
    page, help = page_of(command), memstow(command, "--help").stdout
    everything = page + (run if "options of" in page else "")
    helped = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*",
                            help.split("\n\n", 1)[1] + help.split("\n\n", 1)[0])) - {"--help"}
    for option in helped:
        assert re.search(rf"-{option[2:]}\b", everything), f"memstow-{command}.1 lacks {option}"
        value = "=x" if re.search(rf"{option}=", help) else ""
        done = memstow(command, option + value, status=None)
        assert "unknown option" not in done.stderr, (command, option, done.stderr)
        assert "takes no value" not in done.stderr, (command, option, done.stderr)
    if page == page_of("stow"): # three commands share one page
        continue
    offered = options_of(page) - {"--"}
    assert offered <= helped, f"memstow {command} --help lacks {offered - helped}"
    said = statuses(re.search(r"^Exit code:(.*?)(\n\n|\Z)", help, re.M | re.S)[1])
    told = re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh", page, re.M | re.S)[1]
    assert said == statuses(told), f"memstow {command}: --help has {said}, the page {statuses(told)}"

main = (DOCS / "memstow.1").read_text()
for command in COMMANDS:
    assert re.search(rf"^\.It Cm .*\b{command}\b", main, re.M), f"memstow.1 lacks {command}"
    assert f".Xr memstow-{command} 1" in main or (
        DOCS / f"memstow-{command}.1").is_symlink(), f"memstow.1 does not refer to {command}"
for file in DOCS.glob("*.1"):
    for other in re.findall(r"^\.Xr (memstow[a-z-]*) 1", file.read_text(), re.M):
        assert (DOCS / f"{other}.1").exists(), (file.name, other)
assert statuses(re.search(r"^\.Sh EXIT STATUS\n(.*?)^\.Sh", main, re.M | re.S)[1]) >= {
    "0", "1", "2", "3", "4", "5", "128"}
