# timeout: 600
# alone
"""Moving memory out and back, each way that there is, and what the program may do to it meanwhile and afterwards."""
import _moving

_moving.run_cases("cases")
