#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""With ComfyUI's RAM-pressure cache, a loop's memory does not grow; see _loops_flat.py. loops_flat.py shows the same
with the classic cache. caches.py tests each kind of cache, without a loop.

With the RAM-pressure cache, the allocator's heap settles later. So this test measures from iteration 120 on, and it
suffices if the resident set is flat in one of the two spans. In a run that was measured from iteration 20 on, the
resident set changed by 944, 228, -680 and 212 KiB in spans of a hundred iterations (measured 2026-11-27). In one such
span of another run, it grew by 1,380 KiB: 28 KiB more were live, and 1,177 KiB were the allocator's overhead."""
import _loops_flat

_loops_flat.run("--cache-ram", "0.5", first=120, resident=any)
