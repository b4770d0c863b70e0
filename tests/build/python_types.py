#!/usr/bin/env python3
# needs: pip:mypy==2.4.1 pip:pytest==8.3.4
"""All of tools/python has types throughout: mypy --strict finds no fault in it, and finds the faults of a program that
uses the module wrongly. A line whose types are not checked says why."""
import re

import support

MODULE = support.ROOT / "tools/python/memstow.py"


def mypy(*files, status=0):
    return support.run(support.PYTHON, "-m", "mypy", "--strict", "--cache-dir=/dev/null", *files, status=status,
                       env={"MYPYPATH": str(MODULE.parent), "PATH": "/usr/bin:/bin"}).stdout


modules = [*MODULE.parent.glob("*.py"), *MODULE.parent.glob("memstow_loops/*.py")]
assert len(modules) > 20, modules
mypy(*modules)
unchecked = [line for module in modules for line in module.read_text().split("\n") if "type: ignore" in line]
assert unchecked and not (bare := [line for line in unchecked if not re.search(r"ignore\[[\w-]+\] # \w", line)]), bare
wrong = support.HERE / "wrong.py"
wrong.write_text("""import memstow
owner: memstow.Owner = memstow.owner("unet", keys=(1, 2), policy="stow")
size: int = owner.figures().live_bytes
with memstow.scope(owner), memstow.run("prompt"):
    shares: list[memstow.Share] = memstow.shares()
text: str = memstow.peak()
memstow.owner(7)
kept: str = memstow.comfy.keep(owner)
""")
found = mypy(wrong, status=1)
assert all(f"wrong.py:{line}: error" in found for line in (6, 7, 8)) and found.count("error:") == 3, found
