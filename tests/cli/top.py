"""Tests memstow top in a terminal. Its figures are those of `report --json`. The test also covers keys (for sorting,
searching, views, drilling, freezing, a snapshot and a request to stow), the terminal (resizing, stopping and
interrupting), and the end of the watched process."""
import json, os, pathlib, re, subprocess, sys, time

import _terminal
import support
from _screen import Driven
from support import MEMSTOW, memstow, report, start, wait_for

_terminal.need()
if "ncurses" not in memstow("--version").stdout or "no ncurses" in memstow("--version").stdout:
    support.skip("this memstow was built without ncurses")

PROGRAM = '''
import sys
sys.path.insert(0, sys.argv[1])
import memstow
held = []
def take_large(size): held.append(bytearray(size))
def take_other(size): held.append(bytearray(size))
models = [memstow.owner("UNET", origin="wan.safetensors", policy="stow"), memstow.owner("CLIP\\x1b[31m")]
node = memstow.owner("KSampler", kind="node")
with models[0].scope():
    with node.scope():
        take_large(24 << 20)
with models[1].scope(): take_other(9 << 20)
print("ready", flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
'''
pathlib.Path("program.py").write_text(PROGRAM)
process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", sys.executable, "program.py",
                support.ROOT / "tools/python", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
pid, = [p["pid"] for p in json.loads(memstow("ps", "--json").stdout)["processes"]
        if p["file"] == os.path.abspath("x.mst")]


def tell(line):
    process.stdin.write(line + "\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def size(text):
    """The number of bytes that a size on the screen shows, and by how much it may be off."""
    number, unit = re.fullmatch(r"([+-]?[\d.]+) (B|KiB|MiB|GiB)", text).groups()
    factor = 1024 ** ("B", "KiB", "MiB", "GiB").index(unit)
    return float(number) * factor, 0.051 * factor if factor > 1 else 0


def close(text, bytes):
    shown, off = size(text)
    return abs(shown - bytes) <= off


ROW = re.compile(r"^ *(-?[\d.]+ [KMG]?i?B)(.*?) +([\d,]+)  +(\S.*)$")


def rows(lines):
    return [found.groups() for found in map(ROW.match, lines[6:-1]) if found]


def screen_is_right(lines):
    """Whether the total and the rows by site, in their order, are the same as in a report that is made now."""
    document = report(pid)
    totals, shown = document["totals"], rows(lines)
    live = re.search(r"live (\S+ \S+)", lines[1])
    heap, mapped, blocks = re.search(r"heap (\S+ \S+)  mapped (\S+ \S+)  blocks ([\d,]+)", lines[1]).groups()
    sites = sorted(document["sites"], key=lambda site: -site["live_bytes"])
    return (close(live[1], totals["live_bytes"]) and close(heap, totals["host"]["live_bytes"]) and
            close(mapped, totals["mapped"]["live_bytes"]) and
            int(blocks.replace(",", "")) == totals["live_blocks"] and len(shown) >= 8 and
            all(close(row[0], site["live_bytes"]) and int(row[2].replace(",", "")) == site["live_blocks"]
                for row, site in zip(shown, sites)))


top = Driven(MEMSTOW, "top", pid, columns=150, NO_COLOR=None)
top.see(r"python\S* \(pid \d+\) by model, live bytes")

# --- by model and node: names cannot steer the terminal, and policies are shown
top.see(r"24\.0 MiB .* UNET \(wan\.safetensors\)  \[stow\]$")
top.see(r" 9\.0 MiB .* CLIP\?\[31m$")
owners = {o["name"]: o for o in json.loads(memstow("owners", pid, "--json").stdout)["owners"]}
for row in rows(top.screen.text()):
    name = row[3].split(" ")[0]
    if name in owners:
        assert close(row[0], owners[name]["live_bytes"]) and int(row[2]) == owners[name]["live_blocks"], row
top.press("n")
top.see(r"by node, live bytes")
top.see(r"24\.0 MiB .* KSampler$")
top.press("u")
top.see(r"by run, live bytes")
top.see(r"untagged$")

# --- by site: the figures are those of the report, also after they have changed
top.press("c")
top.see(r"by site, live bytes")
top.wait(screen_is_right, "the figures of the report")
top.see(r"24\.0 MiB .* py take_large +program\.py:6 +\[model UNET \(wan\.safetensors\), node KSampler\]")
tell("take_other(40 << 20)")
top.see(r"^ +40\.0 MiB .* py take_other +program\.py:7$")
top.wait(screen_is_right, "the figures of the report after a change")
assert re.search(r"live \+4\d\.\d MiB", top.screen.text()[2]), top.screen.text()

# --- top shows gains per second, or gains since its start. If it sorts by gain, the row that gained most comes first.
top.press("sss")
top.see(r"by site, live blocks")
def most_blocks_first(lines):
    blocks = [int(row[2].replace(",", "")) for row in rows(lines)]
    return blocks and blocks[0] > 1 and blocks == sorted(blocks, reverse=True)


top.wait(most_blocks_first, "most blocks first")
top.press("sss")
top.see(r"gain since the start of top")
grown = lambda row: row[3].startswith("py take_other") and re.search(r"\+\S+ \wi?B/s", row[1])
top.wait(lambda lines: rows(lines) and grown(rows(lines)[0]), "what has grown first")
top.press("ss")
top.see(r"by site, live bytes")

# --- module and thread
top.press("l")
top.see(r"by module, live bytes")
top.wait(lambda lines: any("python" in row[3] for row in rows(lines)))
by_module = json.loads(memstow("report", pid, "--json", "--by=module").stdout)
top.press("t")
top.see(r"by thread, live bytes")
top.see(r"\(mappings\)$")

# --- search: owners, and frames that are not on the screen
top.press("c/Take_Large") # capital and small letters are the same
top.see(r"^/Take_Large_$")
top.press("\r")
top.see(r'by site, live bytes, search "Take_Large"')
top.wait(lambda lines: len(rows(lines)) == 1 and "take_large" in rows(lines)[0][3], "one row")
top.press("/\x15")
top.press("\x7f" * 12 + "no such name\r")
top.see("nothing matches")
top.press("\x1b")
top.wait(lambda lines: len(rows(lines)) > 8, "all rows again")

# --- drill: from a model to its sites, to a stack, and back
top.press("m/unet\r")
top.wait(lambda lines: len(rows(lines)) == 1, "the model")
top.press("\r")
top.see(r"by site of UNET \(wan\.safetensors\)")
top.wait(lambda lines: len(rows(lines)) == 1 and "take_large" in rows(lines)[0][3], "the site of the model")
top.press("\r")
stack = next(s for s in report(pid, "--top=1000")["sites"] if s["model"] == "UNET")["stack"]
functions = [frame["function"] for frame in stack][:10]
assert "take_large" in functions, functions
top.wait(lambda lines: all(line.strip().removeprefix("py ").split("  ")[0] == function
                           for line, function in zip(lines[7:], functions, strict=False) if function),
         f"the stack {functions}") # a frame of a stripped program has no name, only a place
top.see(r"^py take_large  program\.py:6$")
top.press("\x1b")
top.wait(lambda lines: len(rows(lines)) == 1, "the site again")
top.press("\x1b")
top.see(r"by model, live bytes$")

# --- freeze: nothing moves until it goes on
top.press(" ")
top.see(r"FROZEN$")
top.press("?")
top.see(r"Any key closes this")
top.press("x") # the whole picture is painted again, the lowest line last
top.wait(lambda lines: lines[0].endswith("FROZEN") and lines[-1].endswith("q quit"), "the frozen picture")
frozen = top.screen.text()
tell("take_other(100 << 20)")
end = time.monotonic() + 2.5 # more than two looks long
while time.monotonic() < end:
    top.read(0.1)
assert top.screen.text() == frozen, "\n".join(top.screen.text())
top.press(" ")
top.wait(lambda lines: "FROZEN" not in lines[0] and re.search(r"live 1\d\d\.\d MiB", lines[1]), "the new figures")

# --- snapshot
top.press("w")
name = top.see(r"^(memstow\.python\S*\.mst)$")[1]
assert report(name)["totals"]["live_bytes"] == report(pid)["totals"]["live_bytes"]

# --- stow and restore: asked for, and only y is yes
top.press("m")
top.wait(lambda lines: any("UNET" in row[3] for row in rows(lines)), "models")
top.press("/UNET\rS")
top.see(r"^Stow owner \d+, UNET \(wan\.safetensors\) .*\(y/n\)$")
top.press("n")
top.see(r"q quit$")
assert not owners["UNET"]["stowed_bytes"]
stowed = lambda: next(o for o in json.loads(memstow("owners", pid, "--json").stdout)["owners"]
                      if o["name"] == "UNET")["stowed_bytes"]
assert not stowed()
top.press("S")
top.see(r"\(y/n\)$")
top.press("y")
done = top.see(r"^(model \d+ 'UNET \(wan\.safetensors\)': stowed .*|memstow: .*)$")[1]
if done.startswith("memstow:"): # there is no place for the file, or this kernel cannot stow
    print("not stowed here:", done)
else:
    assert stowed() > 20 << 20
    top.see(r"UNET \(wan\.safetensors\)  \[stow, 2\d\.\d MiB stowed\]")
    top.press("R")
    top.see(r"^Restore owner \d+, UNET .*\(y/n\)$")
    top.press("y")
    top.see(r"^model \d+ 'UNET \(wan\.safetensors\)': restored ")
    assert not stowed()
top.press("T")
top.see(r"^Apply the policies of process \d+ now\? \(y/n\)$")
top.press("q") # which is not y, and does not quit
top.see(r"q quit$")
triggers = lambda: [line["text"] for line in json.loads(memstow("decisions", pid, "--json").stdout)["lines"]
                    if line["kind"] == "TRIGGER"]
assert "by memstow top" not in triggers(), triggers()
top.press("T")
top.see(r"\(y/n\)$")
top.press("y")
top.see(r"^process \d+: gave back ")
assert triggers().count("by memstow top") == 1, triggers()
top.press("\x1b")

# --- the terminal becomes smaller, then too small, and then large again
top.resize(20, 80)
top.wait(lambda lines: len(lines) == 20 and "q quit" in lines[19] or "Enter into" in lines[19], "the smaller screen")
top.resize(8, 40)
top.see("the terminal is too small")
top.resize(30, 150)
top.see(r"by model, live bytes")
top.press("?")
top.see(r"Any key closes this")
top.press(" ")
top.see(r"by model, live bytes")
top.press("q")
top.finish()
assert any(30 <= n <= 37 for n in top.screen.colours), top.screen.colours

# --- Ctrl-Z gives the terminal back to the shell, and fg takes it again
shell = 'set -m; "$@"; echo "STOPPED"; read -r _; fg >/dev/null'
for _ in range(5):
    top = Driven("bash", "-c", shell, "bash", MEMSTOW, "top", pid)
    top.see(r"by model, live bytes") # Ctrl-Z comes while the rest of the picture is written
    top.press("\x1a")
    wait_for(lambda: (top.read(0.05), not top.screen.alternate)[1], what="the shell's screen")
    top.see(r"STOPPED")
    top.press("\r")
    wait_for(lambda: (top.read(0.05), top.screen.alternate)[1], what="the picture again")
    top.press("n")
    top.see(r"by node, live bytes")
    top.press("q")
    top.finish()

# --- NO_COLOR, Ctrl-C, and the list of processes
top = Driven(MEMSTOW, "top", NO_COLOR="1")
top.see(r"memstow top: \d+ tracked process")
top.press("/x.mst\r")
top.see(rf"^ +\d.* {pid} python.*x\.mst$")
top.press("\r")
top.see(rf"python\S* \(pid {pid}\) by model")
top.press("\x1b")
top.see(r"memstow top: \d+ tracked process")
top.press("\x03")
top.finish()
assert not any(30 <= n <= 37 or 40 <= n <= 47 for n in top.screen.colours), top.screen.colours

# --- the process becomes another program, which is tracked, too; then it ends, and the last figures stay
top = Driven(MEMSTOW, "top", pid)
top.see(r"by model")
process.stdin.write(f"import os; os.execv({sys.executable!r}, [{sys.executable!r}, 'next.py'])\n")
pathlib.Path("next.py").write_text("kept = bytearray(70 << 20)\nprint('next', flush=True)\ninput()\n")
process.stdin.flush()
assert process.stdout.readline() == "next\n"
top.see(r"became another program \(exec\)")
top.press("c")
top.wait(screen_is_right, "the figures of the next program")
top.see(r"70\.0 MiB .*next\.py:1$")
process.stdin.write("\n")
process.stdin.close()
support.expect_exit(process, 0)
top.see(r"ENDED: it has ended$")
top.press("m")
top.see(r"by model, live bytes")
top.press("S")
top.see(r"^the process has ended$")
top.press("q")
top.finish()
