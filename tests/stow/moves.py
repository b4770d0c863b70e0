# timeout: 600
# alone
"""Memory is moved out and back, by each method. The program may use and change the memory meanwhile and afterwards."""
import _moving

_moving.run_cases("cases")
