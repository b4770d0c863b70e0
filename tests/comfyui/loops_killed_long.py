#!/usr/bin/env python3
# needs: comfyui
# timeout: 7200
# long
"""A loop with a prefix is killed at 200 random moments. Each time it goes on from the last committed iteration. In the
end it has the same result as a loop that nobody killed."""
import _loops_killed

_loops_killed.run(200, 11, servers=2)
