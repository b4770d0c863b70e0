#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""With ComfyUI's LRU cache, a loop's memory does not grow; see _loops_flat.py. loops_flat.py shows the same with the
classic cache. caches.py tests each kind of cache, without a loop."""
import _loops_flat

_loops_flat.run("--cache-lru", "200")
