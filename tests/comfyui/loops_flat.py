#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""With ComfyUI's classic cache, a loop's memory does not grow; see _loops_flat.py. loops_flat_lru.py shows the same
with the LRU cache, and loops_flat_ram.py with the RAM-pressure cache."""
import _loops_flat

_loops_flat.run()
