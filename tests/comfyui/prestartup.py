#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
"""A ComfyUI that was not started under memstow starts itself again if its user says so by the environment. It does so
once, in the same process, with the same arguments, and with the same environment except memstow's variables. If the
memstow command does not fit, ComfyUI runs as always. (To show this, the test runs the pack's script without ComfyUI.)
One line on standard error says what happened. The test prestart_setting is about the setting with which a user can say
so, too."""
import json, os, pathlib, signal, subprocess

import support
from _comfy import AGAIN, mixed
from _prestartup import started

LEDGER = support.HERE / "the ledger.mst"

comfy, preloaded = started("by-environment", AGAIN, MEMSTOW="1", MEMSTOW_OPTIONS=f"--stacks=none -o '{LEDGER}'",
                           MEMSTOW_SEEN="by ComfyUI")
assert preloaded
done = comfy.run(mixed(1))
assert done["status"]["status_str"] == "success" and comfy.owners(), comfy.log()[-3000:]
pid = comfy.server.pid # the process that the test started, not a child
words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
assert words[1:] == [str(word) for word in comfy.command[1:]], words
env = support.environment_of(pid)
assert env["MEMSTOW_SEEN"] == "by ComfyUI" and env["LD_PRELOAD"] == str(support.LIBRARY), env
others = lambda variables: {name: value for name, value in variables.items()
                            if not name.startswith("MEMSTOW") and name != "LD_PRELOAD"}
of_main = {"HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1"} # ComfyUI sets these before the pack's script runs
assert others(env) == {**others(comfy.environment), **of_main}, env
comfy.server.send_signal(signal.SIGTERM)
assert comfy.server.wait(60) in (-signal.SIGTERM, 0), comfy.server.returncode
report = json.loads(support.memstow("report", "--json", LEDGER).stdout)
assert report["process"]["pid"] == pid, report["process"]
del comfy

missing = support.HERE / "misfit.sh"
missing.write_text("#!/bin/sh\necho 'memstow: does not fit' >&2\nexit 2\n")
missing.chmod(0o755)

# A program that is not ComfyUI runs the pack's script. Afterwards the program goes on as always.
PROGRAM = """import os, runpy, sys
runpy.run_path(sys.argv[1])
print("goes on", os.getpid(), "libmemstow" in open("/proc/self/maps").read())
"""
for expect, env in (("(memstow: does not fit); ComfyUI runs as always", {"MEMSTOW_COMMAND": str(missing)}),
                    ("the library is not there; it runs as always",
                     {"MEMSTOW_COMMAND": str(support.MEMSTOW), "MEMSTOW_RESTARTED": "1"}),
                    ("MEMSTOW_OPTIONS cannot be read (No closing quotation); ComfyUI runs as always",
                     {"MEMSTOW_COMMAND": str(support.MEMSTOW), "MEMSTOW_OPTIONS": "-o 'the ledger.mst"})):
    program = support.start(support.PYTHON, "-c", PROGRAM, support.ROOT / "tools/comfyui/prestartup_script.py",
                            env={**os.environ, "MEMSTOW": "1", **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    said, lines = program.communicate(timeout=60)
    assert said == f"goes on {program.pid} False\n", (said, lines)
    assert lines.count("\n") == 1 and expect in lines, lines
