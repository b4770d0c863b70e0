#!/usr/bin/env python3
# Each case runs by itself over the simulated driver, and its report is as expected: failing calls, physical memory,
# graphs, contexts that end, several devices, owners.
import pathlib

import support, _simulated

libraries = (_simulated.LIBRARIES / "libcuda.so.1", _simulated.LIBRARIES / "13/libcudart.so.13")
program = _simulated.program(pathlib.Path(__file__).with_name("_entries.c"), *libraries, "-ldl", name="entries")
environment = _simulated.environment(SIMCUDA_DEVICES="3")
for case in support.run(program, env=environment).stdout.split():
    support.run(program, case, env=environment)
    output = support.track(program, case, env=environment, file=f"{case}.mst").stdout
    lines = [line for line in output.split("\n") if line.startswith("expect")]
    assert lines, f"{case} says nothing"
    wrong = _simulated.wrong(lines, f"{case}.mst")
    assert not wrong, f"{case}:\n" + "\n".join(wrong)
    print(f"{case}: {len(lines)} expectations")

# The names of unknown entries, each once.
NAMES = ["cuMemGetConjured", "cuMemConjure"]
cuda = support.report("unknown.mst")["cuda"]
assert (cuda["unknown_names"], cuda["first_unknown"]) == (NAMES, NAMES[0]), cuda["unknown_names"]
text = support.memstow("report", "unknown.mst").stdout
assert "CUDA functions for memory, not counted: 3, the first cuMemGetConjured, cuMemConjure\n" in text, text
