# timeout: 200
"""A program that goes into a sandbox while memory is stowed: no call about this memory kills it, and none loses or
brings back content. What cannot be done there fails."""
import _moving

_moving.run_cases("sandboxed")
