# timeout: 300
# Memory is pinned ahead of need, on a thread of memstow's: the first move pins nothing; limits, captures, errors, the
# end of contexts and of the program, forks. Over the simulated driver (a test double): each case of _ahead.c by itself.
from _simcuda import ahead_settings, run_cases

run_cases("ahead", 15, ahead_settings)
