#!/usr/bin/env python3
# long
# timeout: 900
"""./quickstart, in a clone of this state with what it would download: the whole story, in less than a minute once it is
built, in a standard Python without PyTorch."""
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
