"""The sentence "where" names the line that holds most, also if its memory is divided among twenty runs, so that each
part is smaller than what another line holds. Without call sites, the sentence names no line."""
import os, pathlib

import support

pathlib.Path("program.py").write_text("""import memstow, os
kept = []
for number in range(20):
    with memstow.run(f"prompt {number}"):
        kept.append(bytearray(2_000_000))
large = bytearray(8_000_000)
os._exit(0)
""")
os.environ["PYTHONPATH"] = str(support.ROOT / "tools/python")
for stacks, expected in (("full", "38.1 MiB of"), ("none", None)):
    support.memstow("run", "--quiet", f"--stacks={stacks}", "-o", f"{stacks}.mst", "--", support.PYTHON, "program.py")
    report = " ".join(support.memstow("report", f"{stacks}.mst").stdout.split())
    if expected:
        assert f" where {expected}" in report and ": <module> program.py:5 next " in report, report[:800]
    else:
        assert " where " not in report, report[:800]
