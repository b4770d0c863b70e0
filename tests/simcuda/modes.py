# timeout: 300
# Memory moves also where the driver is slow, waits, or takes more memory. Over the simulated driver (a test double), a
# part of the cases; modes_long.py runs all.
import _modes

CASES = {"stays_out", "frees", "replays", "pointers", "half_way", "out_and_back", "freed_memory_is_shown"}
assert CASES <= set(_modes.all_cases())
_modes.run(CASES)
