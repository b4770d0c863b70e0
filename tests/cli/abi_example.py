#!/usr/bin/env python3
# needs: cc
"""The example of docs/abi.md compiles, says what each model has, and runs without memstow, too."""
import subprocess

import support
from support import memstow

program = support.HERE / "owners"
subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-I", support.ROOT / "preload", support.ROOT / "examples/owners.c", "-o", program,
                "-ldl"], check=True)
assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "not under memstow\n"
said = memstow("run", "--quiet", "-o", "x.mst", "--", program).stdout
assert said == "unet: 8388608 bytes in 1 blocks\nvae: 3145728 bytes in 1 blocks\n", said
