#!/usr/bin/env python3
# needs: torch pip:numpy pip:pillow
# timeout: 600
# long
"""As holders.py, with each Python object counted by itself (--python-objects)."""
from _holders import find_all

find_all(("--python-objects",), "objects.mst")
