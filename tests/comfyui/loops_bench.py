#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""tests/bench/loops at a small size: it runs to its end, and each row of its output is there. This says nothing about
speed."""
import os, re

import support

TIME = r"-?[\d.]+ \(-?[\d.]+–-?[\d.]+\)"
said = support.run(support.ROOT / "tests/bench/loops", "--rounds", 2, "--iterations", 3, timeout=580,
                   env={**os.environ, "PYTHONPATH": ""}).stdout
print(said)
rows = dict(re.findall(r"^\| ([^|]+) \| (.+) \|$", said, flags=re.MULTILINE))
assert rows.pop("carried") == "prompt alone, ms | iteration, ms | beyond the prompt, ms", said
assert list(rows) == ["a number", "a number and 1 MiB"], said
assert all(re.fullmatch(" \\| ".join([TIME] * 3), row) for row in rows.values()), said
