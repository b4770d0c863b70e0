#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
# long
"""A loop's memory does not grow, with ComfyUI's classic cache; see _loops_flat.py. The tests loops_flat_lru and
loops_flat_ram show the same with the LRU cache and with the RAM-pressure cache."""
import _loops_flat

_loops_flat.run()
