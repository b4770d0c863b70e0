#!/usr/bin/env python3
# needs: comfyui
# timeout: 1800
"""A loop's memory does not grow, with ComfyUI's LRU cache; see _loops_flat.py."""
import _loops_flat

_loops_flat.run("--cache-lru", "200")
