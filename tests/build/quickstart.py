#!/usr/bin/env python3
# long
# timeout: 2400
"""./quickstart works in a clone of this tree, with its downloads already there, in a Python without PyTorch. Once it is
built, it takes less than a minute. Its last lines say how to install memstow, and these commands work."""
import os, re, shutil, sys, time

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

path, install = (line.strip().partition("  ")[0] for line in said.partition("memstow is built.")[2].splitlines()[1:3])
assert path.startswith("export PATH=") and install == "pip install .", (path, install)
found = support.run("sh", "-ec", f"{path}\ncommand -v memstow", cwd=clone).stdout.strip()
assert found == f"{clone}/build/release/memstow", found
venv = support.HERE / "venv"
support.run(sys.executable, "-m", "venv", venv)
environment = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
support.run("sh", "-ec", install, cwd=clone, env=environment, timeout=1200)
support.run("memstow", "run", "--quiet", "-o", "out.mst", "--", "python", "-c", "import memstow_state", env=environment)
assert "host heap" in support.run("memstow", "report", "out.mst", env=environment).stdout
assert "import torch" not in (clone / "examples/models.py").read_text()
