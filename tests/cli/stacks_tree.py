"""The call tree spends its lines on the largest branches. Frames with the same text are one branch. A line says what
--top leaves out."""
import re
from _ledger import MIB, Ledger
from support import memstow

ledger = Ledger()
program = ledger.module("[program]")


def call(line, parent=0, name="work", file="/opt/app.py"):
    """Makes a new frame at each call, as if it were another instruction of the same line."""
    return ledger.node([ledger.python(name, file, line)], parent)


def hold(node, size):
    ledger.count(ledger.site(program, stack=node), alloc=(size, 1))


# One part of the tree has 26 imports of 2.2 % each. The leak is far from them, at the end of a long chain of calls.
main = call(1, name="main", file="/opt/main.py")
imports = call(2, main, "import")
for number in range(26):
    hold(call(200 + number, call(100 + number, imports, "module"), "constant"), 21 * MIB)
deep = main
for number in range(4):
    hold(call(10 + number, deep, "small"), 25 * MIB)
    deep = call(20 + number, deep, "serve")
for cause in (7, 7, 8):
    hold(call(30, call(cause, deep, "cache"), "leak"), 100 * MIB)
ledger.save("x.mst")


def tree(*options):
    text = memstow("report", "x.mst", "--by=site", *options).stdout
    assert all(len(line) <= 80 for line in text.split("\n")), text
    return text[text.index("\nCall tree"):text.index("\nResident")].strip().split("\n")[1:]


def functions(lines):
    return [re.sub(" +", " ", re.sub(r"^[ \d.]*(?:MiB +[\d.]+ %)?", "", line)).strip() for line in lines]


whole = functions(tree("--top=1000"))
assert whole.count("py leak app.py:30") == 2 and whole.count("py cache app.py:7") == 1, whole
assert sum(line.startswith("py constant") for line in whole) == 26 and not any("more" in line for line in whole), whole

# If few lines are allowed, no branch is left out while a smaller branch is shown.
few = functions(tree("--top=1"))
assert few == ["py main main.py:1", "py import app.py:2", "… 26 more, one 2.2 % (--top=N shows more)",
               "py serve app.py:20", "py serve app.py:21", "py serve app.py:22", "py serve app.py:23",
               "py cache app.py:7", "py leak app.py:30", "… 1 more, one 10.6 % (--top=N shows more)",
               *["… 1 more, one 2.6 % (--top=N shows more)"] * 4], few
usual = tree("--top=5")
assert "py leak app.py:30" in functions(usual) and len(usual) <= 60, usual
assert any(re.search(r" … \d+ more, one 2\.\d % \(--top=N shows more\)$", line) for line in usual), usual

# Native frames further in than the innermost Python frame are only counted; --all-frames shows them.
ledger = Ledger()
program = ledger.module("[program]")
native = [ledger.frame(0x1000 * i, program) for i in range(1, 10)]
hold(
    ledger.node(native[:1] + [ledger.python("a", "/a.py", 1)] + native[1:2] + [ledger.python("b", "/b.py", 1)] +
                native[2:]), MIB)
ledger.save("x.mst")
assert functions(tree()) == ["[program]+0x1000", "py a a.py:1", "[program]+0x2000", "py b b.py:1",
                             "… 7 inner frames"], tree()
every = ["[program]+0x1000", "py a a.py:1", "[program]+0x2000", "py b b.py:1",
         *[f"[program]+0x{i}000" for i in range(3, 10)]]
assert functions(tree("--all-frames")) == every, tree("--all-frames")

# The list of sites does the same.
def sites(*options):
    text = memstow("report", "x.mst", "--by=site", *options).stdout
    lines = text.split("\nCall tree")[0].split("innermost first\n")[1].strip("\n").split("\n")
    return [line.removeprefix("MiB 1 ") for line in functions(lines)]


assert sites() == ["py b b.py:1", "py a a.py:1", "… 1 more, 7 inner frames"], sites()
assert sites("--all-frames") == every[::-1], sites("--all-frames")
