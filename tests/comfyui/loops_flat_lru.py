#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""A loop's memory does not grow, with ComfyUI's LRU cache; see _loops_flat.py. The test loops_flat shows the same with
the classic cache. The test caches has each kind of cache, without a loop."""
import _loops_flat

_loops_flat.run("--cache-lru", "200")
