#!/usr/bin/env python3
# needs: cc
"""In a container that forbids copies of memory by the kernel's own calls (Docker 20.10 does), the functions of
memstow.h work as elsewhere, and refuse invalid pointers. So do the functions of the store, even if no descriptor is
free."""
import pathlib, sys

import support

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "state"))
import _state

refuse = support.compile(pathlib.Path(__file__).with_name("_refuse.c"))
PROGRAMS = support.BUILD / "tests/prog"


def owners_of(program, *wrapped):
    """The names of the owners that the program has registered."""
    support.run(*wrapped, support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program)
    return sorted(owner["name"] for owner in support.report()["owners"])


tried = [program for program in sorted(PROGRAMS.glob("owners_*")) if program.is_file()]
tried += [PROGRAMS / name for name in ("blocks_of_addresses", "heap_survivors", "libstdcxx_comes_late",
                                       "resident_after_moves", "snapshot_of_itself", "trace_and_triggers")]
assert len(tried) >= 18, tried
named = 0
for program in tried:
    owners = owners_of(program, refuse)
    assert owners == owners_of(program), (program, owners)
    named += len(owners)
assert named > 20, named

store, folder = _state.program(), _state.real_disk()
cases = support.run(store).stdout.split()
assert "no_room" in cases, cases # leaves no free descriptor
for case in cases:
    support.run(refuse, support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", store, case,
                env=_state.environment(folder))
