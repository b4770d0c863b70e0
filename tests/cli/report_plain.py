"""A report is plain to read. Its first lines say where most memory is and what to type next. Call stacks begin outside
of the allocator; --all-frames and --absolute show more. A terminal gets colours, unless NO_COLOR or TERM=dumb forbid
it."""
import os, pathlib, re

import _terminal
from _ledger import MIB, Ledger
from support import MEMSTOW, compile, memstow, track

RUN, MODEL = 3, 1

# A real program with an allocator of its own.
program = compile("""
#include <stdlib.h>
__attribute__((noinline)) static void *pool_alloc(size_t size) { char *p = malloc(size); p[0] = 1; return p; }
__attribute__((noinline)) static char *read_table(int count) { char *p = pool_alloc(count << 20); p[1] = 1; return p; }
char *table;
int main(int count, char **words) { table = read_table(count); words[0] = table; _Exit(0); }
""", "reader")
track(program, file="less.mst")
track(program, "a", "b", file="reader.mst")


def stack(*options):
    """The functions of the first call stack."""
    text = memstow("report", "reader.mst", "--by=site", "--top=1", *options).stdout
    lines = text.split("innermost first\n")[1].split("\n\n")[0].split("\n")
    return [line[26:].strip().split("  ")[0] for line in lines if not line.startswith("  …")]


assert stack()[:2] == ["read_table", "main"] and re.search(r"^… (\d+ more, )?1 inner frame$", stack()[-1]), stack()
assert stack("--all-frames")[:3] == ["pool_alloc", "read_table", "main"], stack("--all-frames")
assert not any("inner frame" in line for line in stack("--all-frames")), stack("--all-frames")
source = pathlib.Path("reader.c").resolve()
text = memstow("report", "reader.mst", "--absolute").stdout
assert re.search(rf"read_table  {re.escape(str(source))}:4$", text, re.MULTILINE), text
assert str(source) not in memstow("report", "reader.mst").stdout

# diff and leaks also have the options --all-frames and --absolute. Each command refuses both with any form but text.
assert "pool_alloc" not in memstow("diff", "less.mst", "reader.mst").stdout
assert "pool_alloc" in memstow("diff", "less.mst", "reader.mst", "--all-frames").stdout
assert f"{source}:4" in memstow("diff", "less.mst", "reader.mst", "--absolute").stdout
for command in (["report", "reader.mst"], ["diff", "less.mst", "reader.mst"], ["leaks", "reader.mst"]):
    for option in ("--all-frames", "--absolute"):
        assert " --all-frames and --absolute go with text (see " in memstow(*command, option, "--json", status=2).stderr


def lead(ledger, *options):
    """The lines "where" and "next" of a report."""
    ledger.save("x.mst")
    head = memstow("report", "x.mst", *options).stdout.split("\n\n")[0]
    return {key: " ".join(value.split()) for key, value in
            re.findall(r"^  (where|next)  +(.*(?:\n {13}.*)*)", head, re.MULTILINE)}


ledger = Ledger()
module = ledger.module("/opt/program")
load = ledger.node([ledger.python("load", "/opt/app.py", 12)])
ledger.count(ledger.site(module, stack=load), alloc=(3 * MIB, 3))
ledger.count(ledger.site(module), alloc=(MIB, 1))
assert lead(ledger) == {"where": "3.0 MiB of 4.0 MiB live (75 %) comes from one place: load app.py:12",
                        "next": "memstow report --html -o page.html x.mst: all of it in a browser"}, lead(ledger)
assert re.search(r"py load  app\.py:12$", memstow("report", "x.mst").stdout, re.MULTILINE)
assert re.search(r"py load  /opt/app\.py:12$", memstow("report", "x.mst", "--absolute").stdout, re.MULTILINE)
for options in (["--peak"], ["--churn"], ["--match=load"], ["--by=site"]):
    assert lead(ledger, *options) == {}, options
ledger.count(ledger.site(module, ledger.tag(model=ledger.owner(MODEL, "unet"))), alloc=(4 * MIB, 1))
assert lead(ledger) == {"where": "4.0 MiB of 8.0 MiB live (50 %) is in model unet",
                        "next": "memstow owners x.mst: the policy of each model"}, lead(ledger)
for origin in ("wan.safetensors", "wan2.safetensors"): # models of one name are told apart by their files
    ledger.count(ledger.site(module, ledger.tag(model=ledger.owner(MODEL, "UNET", origin))), alloc=(4 * MIB + 1, 1))
assert lead(ledger)["where"] == "4.0 MiB of 16.0 MiB live (25 %) is in model UNET (wan.safetensors)", lead(ledger)
ledger.owner(RUN, "run 1")
assert lead(ledger)["next"] == "memstow leaks x.mst: what grows from run to run", lead(ledger)
assert "where" not in lead(Ledger())

# Colours.
_terminal.need()


def colours(**environment):
    unset = [word for name in ("NO_COLOR", "TERM") for word in ("-u", name)]
    given = [f"{name}={value}" for name, value in environment.items()]
    shown = _terminal.shown(80, "env", *unset, *given, MEMSTOW, "diff", "less.mst", "reader.mst")
    return re.findall(r"\x1b\[\d+m", shown)


assert "\x1b[31m" in colours(TERM="xterm") and colours(TERM="xterm", NO_COLOR="") == colours(TERM="xterm")
assert colours(TERM="xterm", NO_COLOR="1") == colours(TERM="dumb") == colours() == []
assert "\x1b" not in memstow("diff", "less.mst", "reader.mst", env={**os.environ, "TERM": "xterm"}).stdout
shown = _terminal.shown(80, "env", "-u", "NO_COLOR", "TERM=xterm", MEMSTOW, "report", "reader.mst")
assert "\x1b[1mResident memory" in shown, shown
