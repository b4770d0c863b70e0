#!/usr/bin/env python3
# needs: comfyui
# timeout: 7200
# long
"""A loop with a prefix is killed at 200 random moments. Each time it goes on from the last committed iteration, to the
same result."""
import _loops_killed

_loops_killed.run(200, 11, servers=2)
