# timeout: 600
"""A move of memory that may not be moved is refused with the reason, and the memory stays whole. There is one case for
each reason."""
import _moving

_moving.run_cases("refusals")
