#!/usr/bin/env python3
# needs: torch
# timeout: 400
"""tests/bench/state at a small size: it runs to its end, and each row and each ratio of its output is there. This says
nothing about speed."""
import importlib.util, re, sys

import _state, support

SIZES = 1024, 300_000
WAYS = ["memcpy", "memcpy_warm", "dd", "state_ram", "state_file", "state_prefix", "torch_save_base64",
        "torch_save_file", "safetensors", "shared_memory"]
TIME = r"[\d.e+]+ (?:s|ms|µs) \([\d.e+]+–[\d.e+]+\)"

ways = [way for way in WAYS if way != "safetensors" or importlib.util.find_spec("safetensors")]
folder = _state.real_disk()
options = ["--rounds", 2, "--sizes", ",".join(map(str, SIZES)), "--directory", folder, "--memstow", support.MEMSTOW,
           "--python", sys.executable]
if ways != WAYS: # the module safetensors is not installed
    options += ["--ways", ",".join(ways)]
said = support.run(support.ROOT / "tests/bench/state", *options, timeout=380).stdout
print(said)
sections = re.split(r"^([\d,]+) bytes, 2 rounds$", said, flags=re.MULTILINE)[1:]
assert [int(size.replace(",", "")) for size in sections[::2]] == list(SIZES), said
for section in sections[1::2]:
    rows = dict(re.findall(r"^\| (\w+) \| (.+) \|$", section, flags=re.MULTILINE))
    assert rows.pop("way") == "put | commit | get | read", section
    assert list(rows) == ways, section
    for way, row in rows.items():
        cells = row.split(" | ")
        assert len(cells) == 4 and re.fullmatch(TIME, cells[0]), (way, row)
        assert all(re.fullmatch("–" if way == "dd" else TIME, cell) for cell in cells[1:]), (way, row)
    ratios = re.findall(r"^(\w+): put at [\d.]+ \([\d.]+–[\d.]+\) of (\w+) of the same round$", section,
                        flags=re.MULTILINE)
    assert ratios == [("state_ram", "memcpy"), ("state_file", "dd"), ("state_prefix", "dd")], section
assert not list(folder.iterdir()), list(folder.iterdir())
folder.rmdir()
