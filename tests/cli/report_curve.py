"""The report shows memory over time as a curve that is as wide as the terminal. The curve is drawn with block
characters or in ASCII, as the locale says. Marks have their names where there is room. A few points make no curve. The
summary of a run has the curve in one line."""
import os, re

import _hostile, _terminal
from _ledger import MIB, Ledger
from support import MEMSTOW, PYTHON, memstow

S = 10**9


def text(file, locale, *options):
    environment = {name: value for name, value in os.environ.items() if name not in ("LC_ALL", "LC_CTYPE", "LANG")}
    return memstow("report", file, *options, env={**environment, "LANG": locale}).stdout


def curve(file, locale="C.UTF-8"):
    """The lines of the curve."""
    found = re.search(r"\nOver time\n((?:.+\n)+)", text(file, locale))
    return found and found[1].split("\n")[:-1]


# 64 columns of a second each: memory grows to 64 MiB in 32 s, falls to 16 MiB, and stays there.
ledger = Ledger(start_ns=S, end_ns=65 * S, total_peak=64 * MIB, host_peak=64 * MIB)
ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(16 * MIB, 1))
unet = ledger.owner(1, "unet", "unet.safetensors")
run = ledger.owner(3, "first")
for second in range(32):
    ledger.point(S + second * S, (second + 1) * 2 * MIB)
ledger.point(S + 32 * S, 16 * MIB)
ledger.mark(S + 1 * S, 3, unet)
ledger.mark(S + 3 * S, 1, run)
ledger.mark(S + 8 * S, 3, unet) # at the blank in "run first": its sign is not shown
ledger.mark(S + 31 * S, 7, unet, moved=48 * MIB)
ledger.mark(S + 32 * S, 11, moved=100 * MIB)
ledger.mark(S + 33 * S, 2, run, detail=1)
ledger.save("x.mst")
lines = curve("x.mst")
assert lines == [
    "     64.0 MiB │                          ▁▃▄▅▆██",
    "              │                   ▁▂▃▄▆▇████████",
    "              │             ▁▂▄▅▆▇██████████████",
    "              │       ▂▃▄▅▇█████████████████████▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂",
    "              │▁▂▃▅▆▇██████████████████████████████████████████████████████████",
    "            0 └────────────────────────────────────────────────────────────────",
    "                ▴ ▴ run first                 ▴▴ out of memory           peak ▴",
    "               0 s                                                       64.0 s",
], "\n".join(lines)
plain = curve("x.mst", "C")
assert plain == [
    "     64.0 MiB |                          _.--=##",
    "              |                   _..-==########",
    "              |             _.--==##############",
    "              |       ..--=#####################...............................",
    "              |_..-==##########################################################",
    "            0 +----------------------------------------------------------------",
    "                ^ ^ run first                 ^^ out of memory           peak ^",
    "               0 s                                                       64.0 s",
], "\n".join(plain)

# On a wider terminal the curve is as wide as the terminal.
_terminal.need()
for columns in (100, 120):
    on_terminal = _terminal.shown(columns, "env", "LC_ALL=C.UTF-8", "NO_COLOR=1", MEMSTOW, "report", "x.mst")
    wide = on_terminal.replace("\r", "").split("\nOver time\n")[1].split("\n\n")[0].split("\n")
    assert len(wide) == len(lines) and wide[5] == f"            0 └{'─' * (columns - 16)}", wide
    assert len(wide[7]) == columns - 1 and wide[7].endswith("64.0 s"), wide
    assert wide[3].count("█") > lines[3].count("█") * (columns - 16) / 64 - 3, wide
assert curve("x.mst", "en_US.utf8") == lines and curve("x.mst", "de_DE.ISO-8859-1") == plain
assert not re.search("Over time", text("x.mst", "C", "--match=nothing"))

# Each device has a curve of its own, up to its last point. A device that never held anything has no curve.
for second, live in ((0, 8), (16, 32), (48, 0)):
    ledger.device_point(S + second * S, live * MIB, 0, 64 * MIB)
ledger.save("device.mst")
lines[6:6] = [
    "     32.0 MiB │                █████████████████████████████████",
    "     device 0 │▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄█████████████████████████████████",
    "     64.0 MiB │████████████████████████████████████████████████████████████████",
    "     device 2 │████████████████████████████████████████████████████████████████",
]
assert curve("device.mst") == lines, "\n".join(curve("device.mst"))

# Too few points make no curve.
for points in (2, 0):
    few = Ledger(start_ns=S, end_ns=65 * S)
    few.count(few.site(few.module("/opt/program")), alloc=(16 * MIB, 1))
    for second in range(points):
        few.point(S + second * S, MIB)
    few.save("few.mst")
    assert curve("few.mst") is None

# Many marks, impossible figures and hostile names: the lines stay short and print nothing but text.
wild = Ledger(start_ns=S, end_ns=2 * S, total_peak=2**63)
wild.count(wild.site(wild.module("/opt/program")), alloc=(2**50, 1))
for name in _hostile.NAMES:
    wild.mark(S + 5 * len(wild.marks), 3, wild.owner(1, name))
for i in range(300):
    wild.mark(S + i * 10**7, i % 15, i, i)
    wild.point(S + (i * 7919 % 300) * 10**7, 2**60 >> i % 61, 2**60)
wild.point(2**64 - 1, 1)
wild.save("wild.mst")
for locale in ("C", "C.UTF-8"):
    lines = curve("wild.mst", locale)
    assert lines and max(map(len, lines)) <= 80 and all(line.isprintable() for line in lines), lines

hold = "import time\nheld = []\nfor i in range(20): held.append(bytearray(1 << 20)); time.sleep(.003)"
said = memstow("run", "-o", "run.mst", PYTHON, "-Sc", hold, env={**os.environ, "LC_ALL": "C.UTF-8"}).stderr
line = re.search(r"\n  over time      ([▁-█ ]+)\n", said)
assert line and len(line[1]) <= 48 and line[1].strip()[0] == "▁" and "█" in line[1], said
assert "over time" not in memstow("run", "-o", "true.mst", "true").stderr
