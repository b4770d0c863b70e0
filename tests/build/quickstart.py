#!/usr/bin/env python3
# long
# timeout: 2400
"""./quickstart works in a clone of this tree, with its downloads already there, in a Python without PyTorch. It builds
the wheel, and shows what the installed wheel does. Once the wheel is built, it takes less than a minute. Its last lines
say how to use memstow and how to install it elsewhere, and these commands work."""
import os, re, shutil, sys, time

import support

clone = support.HERE / "clone"
support.run("git", "clone", "--quiet", "--no-hardlinks", support.ROOT, clone)
(clone / "build").mkdir()
for kept in [support.ROOT / "build/deps", *(support.ROOT / "build").glob(".done-*")]:
    if not kept.name.startswith(".done-pip-"): # the clone has an environment of its own
        (shutil.copytree if kept.is_dir() else shutil.copy)(kept, clone / "build" / kept.name)

support.run("./quickstart", cwd=clone, timeout=600) # builds
begin = time.monotonic()
said = support.run("./quickstart", cwd=clone, timeout=300).stdout
seconds = time.monotonic() - begin
assert seconds < 60, f"{seconds:.0f} s"
installed = r"\n\$ build/env/bin/pip install .* build/wheel/memstow-\S+\.whl\n"
assert re.match(installed + r"\n\$ build/env/bin/memstow --version\nmemstow ", said), said[:500]
for word in ("kept", "stowed", "freed", "before", "after"):
    assert re.search(rf"\b{word}\b", said), f"nothing is said to be {word}:\n{said}"
assert said.count("still matches") == 2, said

use, install = (line.strip().partition("  ")[0] for line in said.partition("memstow is installed")[2].splitlines()[1:3])
assert use == ". build/env/bin/activate" and install == "pip install build/wheel/memstow-*.whl", (use, install)
found = support.run("sh", "-ec", f"{use}\ncommand -v memstow", cwd=clone).stdout.strip()
assert found == f"{clone}/build/env/bin/memstow", found
pack = "import command; print(command.find())" # the node pack of the clone finds it, too
alone = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
assert support.run(sys.executable, "-c", pack, cwd=clone / "tools/comfyui", env=alone).stdout.strip() == found
venv = support.HERE / "venv"
support.run(sys.executable, "-m", "venv", venv)
environment = {**os.environ, "PATH": f"{venv}/bin:{os.environ['PATH']}"}
support.run("sh", "-ec", install, cwd=clone, env=environment, timeout=1200)
support.run("memstow", "run", "--quiet", "-o", "out.mst", "--", "python", "-c", "import memstow_state", env=environment)
assert "host heap" in support.run("memstow", "report", "out.mst", env=environment).stdout
assert "import torch" not in (clone / "examples/models.py").read_text()
