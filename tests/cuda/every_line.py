#!/usr/bin/env python3
# Four threads with streams of their own call every line of preload/cuda/cuda_table.h, on every route that has it. For
# each kind of memory, live and allocated, the ledger agrees with the program to the byte. The driver is the simulated
# one, a test double. A line that no program calls fails here. A line without a case does not link.
import json, pathlib, re

import support, _simulated

SOURCE, *PARTS = sorted(pathlib.Path(__file__).parent.glob("_every_line*.c"))
TABLE = (support.ROOT / "preload/cuda/cuda_table.h").read_text()
LINE = re.compile(r'^(?:ENTRY|RESOLVER)\((RUNTIME|DRIVER), (\w+), "(\w*)", (\d+), ([01])', re.M)
lines = {name: (side, base, int(since), int(own)) for side, name, base, since, own in LINE.findall(TABLE)}
assert len(lines) == len(re.findall(r"^(?:ENTRY|RESOLVER)\(", TABLE, re.M)) > 100


def is_of(version, line):
    """Whether this line is the entry that the line's base name means in this version of CUDA."""
    _, base, since, own = line
    return base and since <= version and not any(
        b == base and since < s <= version and o <= own for _, b, s, o in lines.values())


def has(route, line, generation):
    """Whether a route has a line. Resolvers know the lines that have a base name. The runtime asks for the line of its
    own version."""
    side, base, _, _ = line
    if route.startswith("getproc") or route.startswith("entry_point_version"):
        return bool(base)
    if route == "dlvsym":
        return side == "RUNTIME" # symbols of the driver have no version
    return is_of(generation * 1000, line) if route.startswith("entry_point") else True


def check(program, route, generation):
    environment = _simulated.environment(generation, **SETTINGS)
    done = support.track(program, route, env=environment, file="out.mst", status=None)
    assert done.returncode == 0, f"{program.name} {route}: exit status {done.returncode}\n{done.stdout}{done.stderr}"
    said = done.stdout.splitlines()
    called = {line.split()[1] for line in said if line.startswith("called ")}
    wanted = {name for name, line in lines.items() if has(route, line, generation)}
    assert called == wanted, f"{program.name} {route}: without {wanted - called}, with {called - wanted}"
    report = support.report("out.mst", "--top=100000")
    cuda = report["cuda"]
    for line in said:
        if line.startswith("kind "):
            _, kind, *sums = line.split()
            found = [cuda["kinds"][kind][key]
                     for key in ("live_bytes", "live_blocks", "allocated_bytes", "allocated_blocks")]
            assert found == list(map(int, sums)), f"{program.name} {route}: {kind} is {found}, not {sums}"
    by_size = {}
    for block in cuda["blocks"]:
        if block["kind"] != "reserved":
            by_size.setdefault(block["size_bytes"], []).append(block)
    expectations = [line for line in said if line.startswith("expect ")]
    for line in expectations:
        size, key, value = re.fullmatch(r"expect cuda\.blocks\[size_bytes=(\d+)\]\.(\w+) == (\w+)", line).groups()
        blocks = by_size.get(int(size), [])
        assert len(blocks) == 1, f"{program.name} {route}: {line}: {len(blocks)} blocks have this size"
        assert blocks[0][key] == json.loads(value), f"{program.name} {route}: {line}: it is {blocks[0][key]}"
    assert expectations
    oddities = {key: cuda[key] for key in ("foreign_frees", "missed_frees", "unknown_entries")}
    assert not any(oddities.values()), f"{program.name} {route}: {oddities}"
    assert not report["lost"]["reasons"], report["lost"]
    return called


SETTINGS = {"SIMCUDA_FILL": "0", "SIMCUDA_CAPACITY": "32G", "SIMCUDA_DEVICES": "16", "SIMCUDA_MULTICAST": "1",
            "SIMCUDA_VERSION": "13050"}
FLAGS = ("-O1", "-g", "-pthread")
driver, reached = _simulated.LIBRARIES / "libcuda.so.1", set()
for generation in (13, 12):
    dynamic = _simulated.program(SOURCE, *PARTS, name=f"every_line_{generation}",
                                 flags=(*FLAGS, f"-DGENERATION={generation}"))
    for route in support.run(dynamic).stdout.split():
        reached |= check(dynamic, route, generation)
# Three programs, each linked with one runtime: with the runtime of CUDA 12, with that of CUDA 13, and with a runtime
# whose symbols have no versions. All three run with a runtime whose symbols have versions, even the third program.
for name, folder, generation in (("12", "12", 12), ("13", "13", 13), ("unversioned", "unversioned", 13)):
    runtime = _simulated.LIBRARIES / folder / f"libcudart.so.{generation}"
    linked = _simulated.program(SOURCE, *PARTS, driver, runtime, name=f"every_line_linked_{name}",
                                flags=(*FLAGS, "-fPIE", "-pie", "-DLINKED", f"-DGENERATION={generation}"))
    reached |= check(linked, "linked", generation)
assert reached == set(lines), f"called by no program: {set(lines) - reached}"
print(f"{len(lines)} lines")
