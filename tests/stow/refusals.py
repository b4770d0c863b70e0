# timeout: 600
"""What may not be moved is refused with its reason, and stays whole: one case for each reason."""
import _moving

_moving.run_cases("refusals")
