#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""A loop's memory does not grow, with ComfyUI's LRU cache; see _loops_flat.py. The same with the classic cache
(loops_flat), and each kind of cache without a loop (caches)."""
import _loops_flat

_loops_flat.run("--cache-lru", "200")
