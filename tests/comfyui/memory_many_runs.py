#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""Ten runs of a real ComfyUI, each of which loads a model and frees it, grow it by less than 1 MB, in the ledger and in
RSS without freed memory. No identity of a dead model is left. memory_fifty_runs is the longer test, in which all of RSS
counts."""
from _many_runs import measure

measure(10, 10, with_retained=False, windows=2)
