#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""A real ComfyUI grows by less than 1 MB in ten runs, by the ledger and by RSS without freed memory. Each run loads a
model and frees it. No identity of a dead model is left. memory_fifty_runs is the longer test, in which all of RSS
counts."""
from _many_runs import measure

measure(10, 10, with_retained=False, windows=2)
