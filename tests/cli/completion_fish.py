#!/usr/bin/env python3
# needs: deb:fish
"""fish completes commands, options, files and processes, and the words of the program that is to run."""
import os, pathlib, shutil

import support
from _completion import check

if not shutil.which("fish"):
    support.skip("fish is not installed")

# The file is where `cmake --install` and pip put it.
folder = support.HERE / "share/fish/vendor_completions.d"
folder.mkdir(parents=True)
shutil.copy(support.ROOT / "tools/completion/memstow.fish", folder)
environment = {**os.environ, "PATH": f"{pathlib.Path(support.MEMSTOW).parent}:{os.environ['PATH']}",
               "HOME": str(support.HERE), "XDG_DATA_DIRS": str(support.HERE / "share"), "XDG_CONFIG_HOME": "",
               "TERM": "dumb"}


def complete(line):
    """The words that fish offers at the end of the line, without their descriptions."""
    said = support.run("fish", "--command", "complete --do-complete $argv[1]", line, env=environment)
    assert not said.stderr, (line, said.stderr)
    return {offer.partition("\t")[0] for offer in said.stdout.splitlines()}


check(complete)
