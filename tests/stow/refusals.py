# timeout: 600
"""Memory that may not be moved is refused with the reason, and stays whole: one case for each reason."""
import _moving

_moving.run_cases("refusals")
