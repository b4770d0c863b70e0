# timeout: 200
"""A program goes into a sandbox while memory is stowed. No call about this memory kills the program. No call loses
content, or shows old content where zeros must be. What cannot be done in the sandbox fails."""
import _moving

_moving.run_cases("sandboxed")
