#!/usr/bin/env python3
# needs: comfyui
# timeout: 400
"""256 MiB of a loop's state on disk take at most 64 MiB of memory; see _loops_disk.py."""
import _loops_disk

_loops_disk.run(256 * _loops_disk.MB, 64 * _loops_disk.MB)
