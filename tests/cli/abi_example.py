#!/usr/bin/env python3
# needs: cc
"""The examples of docs/abi.md, in C and with ctypes, show what each model has. They also run without memstow."""
import json, re, subprocess

import support
from support import memstow

program = support.HERE / "owners"
subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I", support.ROOT / "include", support.ROOT / "examples/owners.c",
                "-o", program, "-ldl"], check=True)
assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "not under memstow\n"
said = memstow("run", "--quiet", "-o", "x.mst", "--", program).stdout
assert said == "unet: 8388608 bytes in 1 blocks\nvae: 3145728 bytes in 1 blocks\n", said

example, = re.findall(r"```python\n(.*?)```", (support.ROOT / "docs/abi.md").read_text(), re.S)
script = support.HERE / "example.py"
script.write_text(example + "import os\nos._exit(0)\n") # the weights are still alive
subprocess.run([support.PYTHON, script], check=True)
memstow("run", "--quiet", "-o", "y.mst", "--", support.PYTHON, script)
owners = {o["name"]: o for o in json.loads(memstow("owners", "y.mst", "--json").stdout)["owners"]}
assert owners["unet"]["kind"] == "model" and 8 << 20 <= owners["unet"]["live_bytes"] < 10 << 20, owners
