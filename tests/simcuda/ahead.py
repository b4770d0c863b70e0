# timeout: 300
# Memory is pinned ahead of need, on a thread of memstow's, so the first move pins nothing. Also limits, captures,
# errors, the end of contexts and of the program, and forks. Over the simulated driver (a test double): each case of
# _ahead.c by itself.
import support
from _simcuda import ahead_settings, run_cases

group = support.MemoryGroup.make()
if group:
    group.limit(120 << 20)
run_cases("ahead", 18, ahead_settings, without=() if group else ("little_left",),
          before=lambda case: group.join if case == "little_left" else None)
if not group:
    support.skip("little_left: cannot make a control group with the memory controller")
