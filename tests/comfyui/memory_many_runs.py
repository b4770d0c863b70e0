#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""A real ComfyUI grows by less than 1 MB in ten runs. Each run loads a model and frees it. The growth is measured by
the ledger, and by RSS without the freed memory that glibc keeps. No identity of a dead model is left. In the longer
test memory_fifty_runs, all of RSS counts."""
from _many_runs import measure

measure(10, 10, with_retained=False, windows=2)
