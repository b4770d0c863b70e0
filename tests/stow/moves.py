# timeout: 600
# alone
"""Moves out and back, by each method, and what the program may do to its memory meanwhile and afterwards."""
import _moving

_moving.run_cases("cases")
