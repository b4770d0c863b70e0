#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""Ten runs of a real ComfyUI that each load a model and free it grow it by less than 1 MB, in the ledger and in RSS
without freed memory, and leave no dead identity behind. memory_fifty_runs is the longer one, where all of RSS
counts."""
from _many_runs import measure

measure(10, 10, with_retained=False, windows=2)
