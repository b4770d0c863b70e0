#!/usr/bin/env python3
# long
# timeout: 900
"""./quickstart works in a clone of this tree, with its downloads already there, in a Python without PyTorch. Once it is
built, it takes less than a minute."""
import re, shutil, time

import support

clone = support.HERE / "clone"
support.run("git", "clone", "--quiet", "--no-hardlinks", support.ROOT, clone)
(clone / "build").mkdir()
for kept in [support.ROOT / "build/deps", *(support.ROOT / "build").glob(".done-*")]:
    (shutil.copytree if kept.is_dir() else shutil.copy)(kept, clone / "build" / kept.name)

support.run("./quickstart", cwd=clone, timeout=600) # builds
begin = time.monotonic()
said = support.run("./quickstart", cwd=clone, timeout=300).stdout
seconds = time.monotonic() - begin
assert seconds < 60, f"{seconds:.0f} s"
for word in ("kept", "stowed", "freed", "before", "after"):
    assert re.search(rf"\b{word}\b", said), f"nothing is said to be {word}:\n{said}"
assert said.count("still matches") == 2, said
assert "import torch" not in (clone / "examples/models.py").read_text()
