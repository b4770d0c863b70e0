#!/usr/bin/env python3
# needs: deb:valgrind
# timeout: 300
"""`memstow metrics` of a program with four times as many models takes about four times as many instructions. callgrind
counts them, so a busy machine gives the same numbers. The program registers nearly every model twice, so that the
command also has to find models with the same name and origin: they are one sample."""
import os, pathlib, re, subprocess

import support

if support.features()["sanitize"]:
    support.skip("callgrind cannot run a command with sanitizers")
FEW, MANY = 3000, 12000
pathlib.Path("program.py").write_text("""
import sys, memstow
for number in range(int(sys.argv[1])):
    memstow.owner(f"model {number // 2}")
print(memstow.owner("last").id, flush=True)
input()
""")


def instructions(models):
    """Returns how many instructions `memstow metrics` takes, and how many models its samples have."""
    env = {**os.environ, "PYTHONPATH": str(support.ROOT / "tools/python")}
    options = ("--quiet", "-o", f"{models}.mst")
    program = support.start(support.MEMSTOW, "run", *options, "--", support.PYTHON, "program.py", models,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    assert int(program.stdout.readline()) == models + 1
    pid = support.report(f"{models}.mst", "--top=1")["process"]["pid"]
    out = pathlib.Path(f"callgrind.{models}")
    text = support.run("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", support.MEMSTOW, "metrics",
                       f"--models={models}", pid).stdout
    program.communicate("\n")
    return (int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)[1]),
            len(re.findall(r"^memstow_model_live_bytes{", text, re.M)))


(few, of_few), (many, of_many) = instructions(FEW), instructions(MANY)
print(f"{FEW} models: {few / 1e6:.0f} million instructions; {MANY}: {many / 1e6:.0f}")
assert (of_few, of_many) == (FEW // 2 + 1, MANY // 2 + 1), (of_few, of_many)
assert many < 6 * few, (few, many)
